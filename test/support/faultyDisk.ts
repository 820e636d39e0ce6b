import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const run = (command: string, ...args: readonly string[]) => execFileSync(command, args, { stdio: 'pipe' });

/** Whether this process may mount file systems. */
function tryMount(...args: readonly string[]): boolean {
  try {
    run('mount', ...args);
    return true;
  } catch {
    return false;
  }
}

export interface SmallDisk {
  readonly path: string;
  /** Leaves no room for the processes `pids`. */
  fill(pids: readonly number[]): void;
  free(pids: readonly number[]): void;
  remove(): void;
}

/** A disk of a few MiB under `directory`; where mounting is not permitted, a limit on the files of the processes. */
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
        // No room for so many: fewer follow.
      }
    }
  };
  return {
    path,
    fill: (pids) => (isMounted ? fillDisk() : limit(pids, `${statSync(join(path, 'data.mdb')).size}`)),
    free: (pids) => (isMounted ? rmSync(filler) : limit(pids, 'unlimited')),
    remove: () => {
      if (isMounted) run('umount', directory);
      rmSync(directory, { recursive: true });
    },
  };
}

/** Lets nobody open files in `directory` for writing any more; returns how to undo that. */
export function makeReadOnly(directory: string): () => void {
  if (tryMount('--bind', directory, directory)) {
    run('mount', '-o', 'remount,bind,ro', directory);
    return () => void run('umount', directory);
  }
  run('chmod', '-R', 'a-w', directory);
  return () => void run('chmod', '-R', 'u+w', directory);
}
