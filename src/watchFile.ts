import { unwatchFile, watchFile as watchStat } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** How often a watched file is looked at, in milliseconds. Polling, because mounted secrets are swapped by a symbolic link. */
const lookEveryMs = 1000;

/**
 * Calls `onChange` with the content of a file each time it has changed and could be read; one that is away or unreadable
 * for a moment changes nothing. Keeps no process alive. Returns how to stop.
 */
export function watchFile(path: string, onChange: (content: Buffer) => void): () => void {
  const listener = () => {
    readFile(path).then(onChange, () => {});
  };
  watchStat(path, { interval: lookEveryMs, persistent: false }, listener);
  return () => unwatchFile(path, listener);
}
