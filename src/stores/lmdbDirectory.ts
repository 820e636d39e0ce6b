import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDamaged } from './lmdbFile.js';
import { StoreError } from './StoreError.js';

const FILES = ['data.mdb', 'lock.mdb'];
const GUARD = 'set-aside.guard'; // exists while a process renames a database
const OURS = /^((data|lock)\.mdb(\.damaged-.*)?|set-aside\.guard)$/;

const creationMs = 50; // a database that is only being created looks whole after this long, in milliseconds
const guardMs = 3000; // a process that has held the guard for longer than this has died, in milliseconds

/** Creates the directory and its files, readable by this user only from the first moment. May throw. */
export function makeLmdbDirectory(directory: string): void {
  makeDirectory(directory);
  const present = readdirSync(directory);
  // A directory with other things in it (say, /tmp) stays open to others, and a mounted volume may belong to someone else.
  const ours = present.every((name) => OURS.test(name));
  if (ours && statSync(directory).uid === process.getuid?.()) chmodSync(directory, 0o700);
  for (const name of FILES) {
    // POSIX drops a process's locks on a file when it closes any descriptor of it: never open a lock file that is there.
    if (!present.includes(name)) createPrivate(join(directory, name));
    chmodSync(join(directory, name), 0o600);
  }
}

/** Renames a database in `directory` whose file is damaged. */
export function setAsideDamaged(directory: string, onSetAside?: (name: string) => void): void {
  const data = join(directory, 'data.mdb');
  const isBad = () => existsSync(data) && isDamaged(data);
  if (!isBad()) return;
  pause(creationMs);
  setAside(directory, isBad, onSetAside);
}

/** Renames the database in `directory` if it is still bad once no other process is renaming one. */
export function setAside(directory: string, isBad: () => boolean, onSetAside?: (name: string) => void): void {
  const guard = join(directory, GUARD);
  const waitedFrom = performance.now();
  while (!createPrivate(guard)) {
    if (performance.now() - waitedFrom > guardMs) rmSync(guard, { force: true });
    pause(20);
  }
  try {
    if (!isBad()) return; // another process renamed it
    const suffix = `.damaged-${new Date().toISOString().replaceAll(':', '-')}`;
    // The lock file first: a process that finds no data file goes on, and must not find the old lock file.
    for (const name of FILES.toReversed()) {
      if (existsSync(join(directory, name))) renameSync(join(directory, name), join(directory, name + suffix));
    }
    onSetAside?.(`data.mdb${suffix}`);
  } finally {
    rmSync(guard, { force: true });
  }
}

/** Also makes missing parents. Node's recursive `mkdir` never ends under /proc, which reports the parent as missing. */
function makeDirectory(directory: string): void {
  if (existsSync(directory)) return;
  if (!existsSync(dirname(directory))) makeDirectory(dirname(directory));
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if (!textOf(error).startsWith('EEXIST')) throw error; // else another process was faster
  }
}

/** Creates an empty file that only this user can use; false when the file exists already. */
function createPrivate(file: string): boolean {
  try {
    writeFileSync(file, '', { flag: 'ax', mode: 0o600 });
    return true;
  } catch (error) {
    if (textOf(error).startsWith('EEXIST')) return false;
    throw error;
  }
}

/** Blocks this process, which is starting. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The error that is shown for a directory that cannot be used. */
export function unusable(directory: string, error: unknown): StoreError {
  return new StoreError('misconfigured', `CACHE_URL: the directory ${directory} cannot be opened: ${textOf(error)}`);
}

/** The message of anything thrown. */
export const textOf = (error: unknown): string => String((error as Error | undefined)?.message ?? 'unknown error');
