import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { withoutByteOrderMark } from '../process/json.js';

/** How often files are looked at, in milliseconds. By their names, because mounted secrets are swapped by a symbolic link. */
const lookEveryMs = 1000;

/**
 * Calls `onChange` soon, and after each change of the files and of the files in folders, once they have stayed the same for a
 * second: they may be seen half-written, or one renewed before another. Never for pipes, which can be read only once. Does not
 * keep the process alive. Returns what stops it.
 */
export function follow(paths: readonly string[], onChange: () => unknown): () => void {
  let told = '';
  let seen = '';
  const timer = setInterval(() => {
    const now = paths.map(stateOf).join('');
    if (now === seen && now !== told) {
      told = now;
      onChange();
    }
    seen = now;
  }, lookEveryMs).unref();
  return () => clearInterval(timer);
}

/** A text that changes when the file or folder does; empty for what is not there. */
function stateOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory())
    return readdirSync(path)
      .map((name) => stateOf(join(path, name)))
      .join('');
  return stats?.isFile() ? `${path} ${stats.ino} ${stats.size} ${stats.ctimeMs}\n` : '';
}

/** The value in a file. @throws Error of the file system */
export function readValue(path: string): string {
  return valueIn(readFileSync(path, 'utf8'));
}

/** The value in a variable or a file, without the line break that shells and editors add. */
export function valueIn(content: string): string {
  return withoutByteOrderMark(content).replace(/\r?\n$/, '');
}
