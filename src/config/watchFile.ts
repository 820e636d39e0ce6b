import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { withoutByteOrderMark } from '../json.js';
import { Secret } from './secret.js';

/** Between two looks at a watched file, in milliseconds. Polling, because mounted secrets are swapped by a symbolic link. */
const lookEveryMs = 1000;
/** At start, a file whose content did not change for this long is complete, in milliseconds. */
const settleMs = 500;
/** At start, a file last modified this long ago is complete as well, in milliseconds. */
const completeAtAgeMs = 1000;
/** After so many reads at the start, a file that keeps changing is used anyway. */
const maxReads = 20;

/**
 * Calls `onContent` with the content of a file soon, and again each time it has changed. While a file is written in place it
 * changes, so it is complete when two looks find the same; one that is away or unreadable for a moment changes nothing.
 * Keeps no process alive. Returns how to stop.
 */
export function watchFile(path: string, onContent: (content: Buffer) => void): () => void {
  return watch(() => readRegular(path), onContent);
}

/** The same for anything that can be looked at. With `told` it is known already. `onChange` must not throw. */
export function watch(
  look: () => Promise<Buffer | undefined>,
  onChange: (seen: Buffer) => void | Promise<void>,
  told?: Buffer,
): () => void {
  const stopped = new AbortController();
  void follow(look, onChange, told, stopped.signal);
  return () => stopped.abort();
}

async function follow(
  look: Parameters<typeof watch>[0],
  onChange: Parameters<typeof watch>[1],
  told: Buffer | undefined,
  signal: AbortSignal,
): Promise<void> {
  for (let seen: Buffer | undefined, known = told; !signal.aborted; ) {
    const now = await look().catch(() => undefined);
    if (now && seen?.equals(now) && !known?.equals(now) && !signal.aborted) {
      known = now;
      await onChange(now);
    }
    seen = now;
    await sleep(lookEveryMs, undefined, { ref: false, signal }).catch(() => {});
  }
}

export function isPipe(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFIFO() ?? false;
}

/** Undefined for a pipe, which was read to its end at the start. */
export async function readRegular(path: string): Promise<Buffer | undefined> {
  return (await stat(path)).isFile() ? readFile(path) : undefined;
}

/** Reads a file for the start of the process, waiting while it may still be written. @throws Error of the file system */
export function readCompleteSync(path: string): Buffer {
  // A pipe, as a shell makes of `<(command)`, can be read only once, and to its end.
  if (!statSync(path).isFile()) return readFileSync(path);
  const neverSet = new Int32Array(new SharedArrayBuffer(4));
  let last: Buffer | undefined;
  for (let reads = 1; ; reads += 1) {
    const ageMs = Date.now() - statSync(path).mtimeMs;
    const content = readFileSync(path);
    if (ageMs >= completeAtAgeMs || reads === maxReads || last?.equals(content)) return content;
    last = content;
    Atomics.wait(neverSet, 0, 0, settleMs);
  }
}

/** A secret that follows the file it was read from. */
export interface FollowedSecret {
  /** The one in use at the start. */
  readonly secret: Secret | undefined;
  /** Shorter ones are refused, in characters. */
  readonly minLength: number;
  readonly onRotated: (secret: Secret) => void;
  /** Called when the file is emptied; without it, an empty file is refused. */
  readonly onWithdrawn?: () => void;
  /** What the file holds cannot be the secret: the one in use stays. */
  readonly onRefused: () => void;
}

/** Returns how to stop. */
export function watchSecretFile(path: string, options: FollowedSecret): () => void {
  const { secret, minLength, onRotated, onWithdrawn, onRefused } = options;
  let inUse = secret?.reveal() ?? '';
  return watchFile(path, (content) => {
    const text = secretIn(content.toString());
    if (text === inUse) return;
    if (text === '' && onWithdrawn) {
      inUse = text;
      return onWithdrawn();
    }
    if (text.length < minLength) return onRefused();
    inUse = text;
    onRotated(new Secret(text));
  });
}

/** The text of a file that holds one secret: editors end its line. */
export function secretIn(content: string): string {
  return withoutByteOrderMark(content).replace(/\r?\n$/, '');
}
