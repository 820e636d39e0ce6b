import { existsSync } from 'node:fs';
import { access, constants, type FileHandle, mkdir, open, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pause } from '../process/pause.js';
import { ConfigError } from '../process/systemErrors.js';
import { StoreError } from './StoreError.js';

/** A holder whose time stamp has not moved for this long, by the clock of the process that waits, counts as dead. */
const deadAfterMs = 4000;
const lookEveryMs = 100;

export interface Wait {
  /** How long to wait until another process that uses the directory ends, in milliseconds. */
  readonly waitMs: number;
  /** Another process has the directory, or had it when it was killed: the wait begins. */
  readonly onWait?: () => void;
}

/**
 * The right of one process to a directory: an empty file, whose creation is atomic and needs no space on a full disk. The
 * holder renews the file's time each second, and knows it by its inode, which no other file gets while this one is open. A
 * process id would not do: in two containers each process has the id 1.
 */
export class DirectoryLock {
  private constructor(
    private readonly path: string,
    private readonly file: FileHandle,
    private readonly inode: number,
  ) {}

  /**
   * Makes the directory if need be, and takes it.
   * @throws ConfigError when a live process still holds the directory after `waitMs`; the system's error
   */
  static async take(directory: string, { waitMs, onWait }: Wait): Promise<DirectoryLock> {
    await makeDirectory(directory);
    const path = join(directory, 'lock');
    const beganAt = performance.now();
    let seen: string | undefined;
    let movedAt = beganAt;
    for (;;) {
      const file = await open(path, 'wx', 0o600).catch(unlessItExists);
      if (file !== undefined) return new DirectoryLock(path, file, (await file.stat()).ino);
      // Checked here, because an attempt to take a lock that exists does not show whether the directory can be written to.
      await access(`${directory}/.`, constants.W_OK | constants.X_OK);
      const found = await stat(path).catch(() => undefined);
      const now = performance.now();
      const state = found ? `${found.ino} ${found.mtimeMs}` : undefined; // changes with the holder and each renewal
      if (state && !seen) onWait?.();
      if (state !== seen) {
        if (seen && state && now - beganAt >= waitMs) throw inUse(directory);
        seen = state;
        movedAt = now;
      } else if (now - movedAt >= deadAfterMs) await rm(path, { force: true });
      await pause(lookEveryMs); // also after a removal: others that wait may be about to remove the file, too
    }
  }

  /** @throws StoreError when another process has taken the lock while this one stood still; the system's error when it is gone */
  async check(): Promise<void> {
    if ((await stat(this.path)).ino !== this.inode) throw new StoreError('refused', 'ELOCKED');
  }

  async renew(): Promise<void> {
    await this.check();
    await this.file.utimes(new Date(), new Date());
  }

  async release(): Promise<void> {
    await this.check()
      .then(() => rm(this.path, { force: true }))
      .finally(() => this.file.close())
      .catch(() => undefined); // it is another process's, or cannot be removed
  }
}

/** Also makes missing parents. Node's recursive `mkdir` never ends under /proc, which reports the parent as missing. */
async function makeDirectory(directory: string): Promise<void> {
  if (existsSync(directory)) return;
  await makeDirectory(dirname(directory));
  await mkdir(directory, { mode: 0o700 }).catch((error) => {
    if (!existsSync(directory)) throw error; // else another process was faster
  });
}

function unlessItExists(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'EEXIST') throw error;
}

const inUse = (directory: string) =>
  new ConfigError(
    `CACHE_URL: another gateway uses ${directory}: stop it first (several processes share a Redis, redis://…)`,
  );
