// Files that are printed from the build and committed: written by a command, compared by `npm run check`.

import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/**
 * Writes `text` to the file at `path` (from the repository's root) when it differs, so that an unchanged file keeps its
 * date. With `check` nothing is written, and a difference throws, naming the `command` that mends it.
 */
export async function keepInSync(path, text, { check, command }) {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
  const committed = await readFile(file, 'utf8').catch((error) => {
    if (error.code !== 'ENOENT') throw error;
    return undefined;
  });
  if (committed === text) return;
  if (!check) return writeFile(file, text);
  const problem = committed === undefined ? 'is missing' : `is out of date (${firstDifference(committed, text)})`;
  throw new Error(`${path} ${problem}: run \`${command}\` and commit it.`);
}

function firstDifference(committed, text) {
  const now = text.split('\n');
  const line = committed.split('\n').findIndex((content, index) => content !== now[index]);
  return `first at line ${line === -1 ? committed.split('\n').length : line + 1}`;
}
