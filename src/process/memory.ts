import { getHeapStatistics } from 'node:v8';
import { LRUCache } from 'lru-cache';

type Thing = NonNullable<unknown>;
type Json = Readonly<Record<string, unknown>>;

/** Looks the clock up at each call, because tests and the simulator replace it. lru-cache would keep the first one. */
const perf = { now: () => performance.now() };

/**
 * An LRU cache that allocates memory as it fills: lru-cache's own `max` would allocate all at once. Here, `max` bounds the sum of
 * the sizes of the entries. Without a `sizeCalculation`, each has the size 1.
 */
export class BoundedCache<Value extends Thing, Key extends Thing = string> extends LRUCache<Key, Value> {
  constructor({ max, ...options }: LRUCache.Options<Key, Value, unknown> & { readonly max: number }) {
    const defaults = { maxSize: max, sizeCalculation: () => 1, ttlResolution: 0, perf };
    super({ ...defaults, ...options } as LRUCache.Options<Key, Value, unknown>);
  }
}

/**
 * The last `--max-old-space-size` given to Node.js, in MiB. V8's own limit would also have the young generation, up to 192 MB,
 * where nothing stays for long.
 */
const givenMiB = /.*--max[-_]old[-_]space[-_]size=(\d+)/.exec(
  `${process.env['NODE_OPTIONS']} ${process.execArgv}`,
)?.[1];
const heapBytes = Number(givenMiB) * 2 ** 20 || getHeapStatistics().heap_size_limit;

/** The bytes of one of so many equal parts of the heap (`--max-old-space-size`), at most `most`. */
export const heapPart = (parts: number, most = Infinity): number => Math.min(most, Math.floor(heapBytes / parts));

/** How many things of so many bytes may be remembered: those that fit into a sixteenth of the heap, at most 100,000. */
export const mostRemembered = (bytes: number): number => Math.min(100_000, Math.floor(heapPart(16) / bytes));

/** A copy of a text that is to be kept: a part of a longer text would keep all of that in memory. */
export const ownText = (text: string): string => Buffer.from(text).toString();

/** Most bytes that V8 takes for an object or array besides its members: those of an empty one with room to grow. */
const containerBytes = 64;
const scalarBytes = 16; // a number or, rounded up, a boolean or null
const slotBytes = 8; // a slot that holds a member or its key
const textHeaderBytes = 16;

/**
 * About how many bytes of memory a JSON value takes. (An empty object takes twenty times as much as its JSON.) Recursive, so
 * only for values of bounded depth.
 */
export function heldBytes(value: unknown): number {
  if (typeof value === 'string') return textBytes(value);
  if (typeof value !== 'object' || value === null) return scalarBytes;
  let bytes = containerBytes;
  if (Array.isArray(value)) for (const item of value) bytes += slotBytes + heldBytes(item);
  // `for in` takes a third of the time of `Object.entries`.
  else for (const key in value) bytes += 2 * slotBytes + textBytes(key) + heldBytes((value as Json)[key]);
  return bytes;
}

/** One byte per character, or two when any character is beyond ASCII. (V8 takes two only beyond Latin-1.) */
function textBytes(text: string): number {
  return textHeaderBytes + (Buffer.byteLength(text) === text.length ? text.length : 2 * text.length);
}
