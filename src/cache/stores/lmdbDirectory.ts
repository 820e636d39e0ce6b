import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { isDamaged } from './lmdbFile.js';
import { StoreError } from './StoreError.js';

const FILES = ['data.mdb', 'lock.mdb'];
/** Exists while a process renames a database. */
const GUARD = 'set-aside.guard';
const OURS = /^((data|lock)\.mdb(\.damaged-.*)?|set-aside\.guard)$/;

/** What is only being created looks whole after this long, in milliseconds. */
const secondLookMs = 50;
/** A process that sets a database aside takes moments; one that takes longer than this has died, in milliseconds. */
const guardMs = 3000;

/**
 * Creates what LMDB would create with the process's umask, so that nobody else on the machine can read it at any moment.
 * Throws when the directory cannot be made or written to.
 */
export function makeLmdbDirectory(directory: string): void {
  makeDirectory(directory);
  const present = readdirSync(directory);
  // A directory that holds other things (say, /tmp) is not ours to close to others, and a mounted volume may belong to
  // someone else; the files are private in any case.
  const ours = present.every((name) => OURS.test(name));
  if (ours && statSync(directory).uid === process.getuid?.()) chmodSync(directory, 0o700);
  for (const name of FILES) {
    // Never open and close a lock file that is there: POSIX drops a process's locks on a file when it closes any descriptor
    // of it, and another instance in this process would then pass for dead.
    if (!present.includes(name)) createPrivate(join(directory, name));
    chmodSync(join(directory, name), 0o600);
  }
}

/** Renames a damaged database in `directory` and names the file to `onSetAside`. */
export function setAsideDamaged(directory: string, onSetAside?: (name: string) => void): void {
  const data = join(directory, 'data.mdb');
  const isBad = () => existsSync(data) && isDamaged(data);
  if (!isBad()) return;
  pause(secondLookMs);
  setAside(directory, isBad, onSetAside);
}

/**
 * Renames the database in `directory` when it is still bad once no other process is setting it aside. Of several processes
 * that find it bad one renames it, and the others find nothing or a new one.
 */
export function setAside(directory: string, isBad: () => boolean, onSetAside?: (name: string) => void): void {
  const guard = join(directory, GUARD);
  const waitedFrom = performance.now();
  while (!createPrivate(guard)) {
    if (performance.now() - waitedFrom > guardMs) rmSync(guard, { force: true });
    pause(20);
  }
  try {
    if (!isBad()) return;
    const suffix = `.damaged-${new Date().toISOString().replaceAll(':', '-')}`;
    // The lock file first: whoever finds no data file, and so may go on, must not find the old lock file either.
    for (const name of FILES.toReversed()) {
      if (existsSync(join(directory, name))) renameSync(join(directory, name), join(directory, name + suffix));
    }
    onSetAside?.(`data.mdb${suffix}`);
  } finally {
    rmSync(guard, { force: true });
  }
}

/** Level by level: Node's own recursive way never ends under /proc, where making a directory says that its parent is missing. */
function makeDirectory(directory: string): void {
  if (existsSync(directory)) return;
  if (!existsSync(dirname(directory))) makeDirectory(dirname(directory));
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if (!textOf(error).startsWith('EEXIST')) throw error; // else a sibling was faster
  }
}

/** Tells whether it did: false when the file is there already. */
function createPrivate(file: string): boolean {
  try {
    closeSync(openSync(file, 'ax', 0o600));
    return true;
  } catch (error) {
    if (textOf(error).startsWith('EEXIST')) return false;
    throw error;
  }
}

/** Holds up this process, which is starting and does nothing else. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** The error that is shown for a directory that cannot be used. */
export function unusable(error: unknown): StoreError {
  return new StoreError('misconfigured', `CACHE_URL: the directory of lmdb: cannot be opened: ${textOf(error)}`);
}

/** The message of whatever was thrown. */
export function textOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : 'unknown error';
}
