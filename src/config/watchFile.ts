import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { withoutByteOrderMark } from '../json.js';
import { pause } from '../process/pause.js';
import { Secret } from './secret.js';

/** Poll interval of a watched file, in milliseconds. Polled, because mounted secrets are swapped by a symbolic link. */
const lookEveryMs = 1000;
/** At start, a file whose content did not change for this long is complete, in milliseconds. */
const settleMs = 500;
/** At start, a file last modified this long ago is complete as well, in milliseconds. */
const completeAtAgeMs = 1000;
/** After so many reads at the start, a file that keeps changing is used anyway. */
const maxReads = 20;

/**
 * Calls `onContent` with the content of a file soon, and again after each change. A file may be seen half-written, so content
 * counts when two polls in a row find the same; a file that is missing or unreadable for a moment counts as unchanged. Does
 * not keep the process alive. Returns what stops it.
 */
export function watchFile(path: string, onContent: (content: Buffer) => void): () => void {
  return watch(() => readRegular(path), onContent);
}

/** The same for anything that `look` can read. `told` is content that the caller knows already. `onChange` must not throw. */
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
    await pause(lookEveryMs, { ref: false, signal });
  }
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
  /** Shortest secret accepted, in characters. */
  readonly minLength: number;
  readonly onRotated: (secret: Secret) => void;
  /** Called when the file is emptied; without it, an empty file is refused. */
  readonly onWithdrawn?: () => void;
  /** Called when the content of the file cannot be the secret; the one in use stays. */
  readonly onRefused: () => void;
}

/** Follows the file of a secret. Returns what stops it. */
export function watchSecretFile(path: string, options: FollowedSecret): () => void {
  const { secret, minLength, onRotated, onWithdrawn, onRefused } = options;
  let inUse = secret?.reveal() ?? '';
  return watchFile(path, (content) => {
    const text = valueIn(content.toString());
    if (text === inUse) return;
    if (text === '' && onWithdrawn) {
      inUse = text;
      return onWithdrawn();
    }
    if (text.length < minLength || hasControlCharacters(text)) return onRefused();
    inUse = text;
    onRotated(new Secret(text));
  });
}

/** The value in a variable or a file, without the line break that shells and editors add. */
export function valueIn(content: string): string {
  return withoutByteOrderMark(content).replace(/\r?\n$/, '');
}

/** Whether a value has a character that nobody types on purpose, such as a line break between two secrets. */
export function hasControlCharacters(value: string): boolean {
  return /\p{Cc}/u.test(value);
}
