import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const run = (command: string, ...args: readonly string[]) => execFileSync(command, args, { stdio: 'pipe' });

/** Mounts a file system; returns false when this process may not. */
function tryMount(...args: readonly string[]) {
  try {
    run('mount', ...args);
    return true;
  } catch {
    return false;
  }
}

interface SmallDisk {
  readonly path: string;
  /** Fills the disk, so that the processes `pids` can write no more. */
  fill(pids: readonly number[]): void;
  free(pids: readonly number[]): void;
  remove(): void;
}

/** A disk of 4 MiB at `directory`; where mounting is not permitted, a file size limit on the processes instead. */
export function smallDisk(directory: string): SmallDisk {
  mkdirSync(directory);
  const isMounted = tryMount('-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', directory);
  const path = join(directory, 'cache');
  const filler = join(directory, 'filler');
  const limit = (pids: readonly number[], bytes: string) => {
    for (const pid of pids) run('prlimit', '--pid', `${pid}`, `--fsize=${bytes}:`);
  };
  const fillDisk = () => {
    for (let bytes = 4 << 20; bytes >= 1; bytes >>= 1) {
      try {
        writeFileSync(filler, Buffer.alloc(bytes), { flag: 'a' });
      } catch {
        // Too large for the space left: the next piece is smaller.
      }
    }
  };
  return {
    path,
    fill: (pids) => (isMounted ? fillDisk() : limit(pids, `${statSync(join(path, 'journal')).size}`)),
    free: (pids) => (isMounted ? rmSync(filler) : limit(pids, 'unlimited')),
    remove: () => {
      if (isMounted) run('umount', directory);
      rmSync(directory, { recursive: true });
    },
  };
}

/** Makes `directory` read-only; returns a function that undoes it. */
export function makeReadOnly(directory: string): () => void {
  if (tryMount('--bind', directory, directory)) {
    run('mount', '-o', 'remount,bind,ro', directory);
    return () => void spawnSync('umount', [directory]);
  }
  run('chmod', '-R', 'a-w', directory);
  return () => void run('chmod', '-R', 'u+w', directory);
}
