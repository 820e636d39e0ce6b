import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { endianness } from 'node:os';
import { join } from 'node:path';

const FILES = ['data.mdb', 'lock.mdb'];

/**
 * Creates what LMDB would create with the process's umask, so that nobody else on the machine can read it at any moment.
 * Throws when the directory cannot be used, or holds a data file that is no database.
 */
export function prepareLmdbDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // A directory that holds other things (say, /tmp) is not ours to close to others, and a mounted volume may belong to
  // someone else; the files are private in any case.
  const ours = readdirSync(directory).every((name) => FILES.includes(name));
  if (ours && statSync(directory).uid === process.getuid?.()) chmodSync(directory, 0o700);
  const present = readdirSync(directory);
  for (const name of FILES) {
    // Never open and close a lock file that is there: POSIX drops a process's locks on a file when it closes any descriptor
    // of it, and another instance in this process would then pass for dead.
    if (!present.includes(name)) createPrivate(join(directory, name));
    chmodSync(join(directory, name), 0o600);
  }
  assertDatabase(join(directory, 'data.mdb'));
}

function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'ax', 0o600));
  } catch (error) {
    if (!textOf(error).startsWith('EEXIST')) throw error; // else a sibling was faster
  }
}

/** LMDB's own check comes too late: opening a file that is something else, or cut off, ends the process with a segmentation fault. */
function assertDatabase(file: string): void {
  const header = Buffer.alloc(8192);
  const descriptor = openSync(file, 'r');
  const length = readSync(descriptor, header, 0, header.length, 0);
  closeSync(descriptor);
  const magic = endianness() === 'LE' ? header.readUInt32LE(24) : header.readUInt32BE(24);
  if (length === 0 || (length === header.length && magic === 0xbeefc0de)) return;
  throw new Error('data.mdb is damaged or something else; name another directory or remove it');
}

/** The message of whatever was thrown. */
export function textOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : 'unknown error';
}
