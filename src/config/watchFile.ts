import { readFileSync, statSync, unwatchFile, watchFile as watchStat } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Secret } from './secret.js';

/** Between two looks at a watched file, in milliseconds. Polling, because mounted secrets are swapped by a symbolic link. */
const lookEveryMs = 1000;
/** A file that is the same after this time is complete, in milliseconds; while it is written in place it changes. */
const settleMs = 500;
/** At the start of the process a file of this age is complete, in milliseconds. */
const completeAtAgeMs = 1000;
/** After so many reads at the start, a file that keeps changing is taken as it is. */
const maxReads = 20;

/** Content with the time of its last change, as of the moment before it was read. */
interface FileRead {
  readonly mtimeMs: number;
  readonly content: Buffer;
}

/**
 * Calls `onContent` with the content of a file soon, and again each time it has changed, once it is complete; a file that
 * is away or unreadable for a moment changes nothing. Keeps no process alive. Returns how to stop.
 */
export function watchFile(path: string, onContent: (content: Buffer) => void): () => void {
  const stopped = new AbortController();
  let reading = false;
  const look = async () => {
    if (reading) return; // the read under way ends only when the file stays the same
    reading = true;
    const content = await readComplete(path, stopped.signal).catch(() => undefined);
    reading = false;
    if (content !== undefined && !stopped.signal.aborted) onContent(content);
  };
  watchStat(path, { interval: lookEveryMs, persistent: false }, look);
  void look(); // for a change since the file was read at the start
  return () => {
    stopped.abort();
    unwatchFile(path, look);
  };
}

async function readComplete(path: string, signal: AbortSignal): Promise<Buffer> {
  for (let last: FileRead | undefined; ; ) {
    const stats = await stat(path);
    if (!stats.isFile()) throw new Error('Expected a file to watch');
    const next = { mtimeMs: stats.mtimeMs, content: await readFile(path) };
    if (isSame(last, next)) return next.content;
    last = next;
    await sleep(settleMs, undefined, { ref: false, signal });
  }
}

/** Reads a file for the start of the process, waiting while it may still be written. @throws Error of the file system */
export function readCompleteSync(path: string): Buffer {
  // A pipe, as a shell makes of `<(command)`, can be read only once, and to its end.
  if (!statSync(path).isFile()) return readFileSync(path);
  const neverSet = new Int32Array(new SharedArrayBuffer(4));
  let last: FileRead | undefined;
  for (let reads = 1; ; reads += 1) {
    const next = { mtimeMs: statSync(path).mtimeMs, content: readFileSync(path) };
    const isOld = Date.now() - next.mtimeMs >= completeAtAgeMs;
    if (isOld || reads === maxReads || isSame(last, next)) return next.content;
    last = next;
    Atomics.wait(neverSet, 0, 0, settleMs);
  }
}

function isSame(one: FileRead | undefined, other: FileRead): boolean {
  return one !== undefined && one.mtimeMs === other.mtimeMs && one.content.equals(other.content);
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
export function watchSecretFile(path: string, followed: FollowedSecret): () => void {
  return watchFile(path, (content) => {
    const text = secretIn(content.toString());
    if (text === followed.current()?.reveal()) return;
    if (text.length < followed.minLength) followed.onRefused();
    else followed.onRotated(new Secret(text));
  });
}

/** The text of a file that holds one secret: editors end its line. */
export function secretIn(content: string): string {
  return content.replace(/\r?\n$/, '');
}
