import { unwatchFile, watchFile as watchStat } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Secret } from './secret.js';

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

/** A secret that follows a file. */
export interface FollowedSecret {
  /** Shorter ones are refused, in characters. */
  readonly minLength: number;
  readonly current: () => Secret | undefined;
  readonly onRotated: (secret: Secret) => void;
  /** What the file holds cannot be the secret: the one in use stays. */
  readonly onRefused: () => void;
}

/** Has a secret follow the file it was read from. Returns how to stop. */
export function watchSecretFile(
  path: string,
  { minLength, current, onRotated, onRefused }: FollowedSecret,
): () => void {
  return watchFile(path, (content) => {
    const text = secretIn(content.toString());
    if (text === current()?.reveal()) return;
    if (text.length < minLength) onRefused();
    else onRotated(new Secret(text));
  });
}

/** The text of a file that holds one secret: editors end its line. */
export function secretIn(content: string): string {
  return content.replace(/\r?\n$/, '');
}
