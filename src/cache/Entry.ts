import { errorCodes, GatewayError } from '../errors/errors.js';
import type { Stored } from '../stores/Store.js';

/** A cached answer of the service. */
export interface Entry<Value> {
  /** Random: tells two fetches apart even when they brought the same value. */
  readonly version: string;
  readonly value: Value;
  /** When it was fetched, by the monotonic clock of this process. In the future where the store's clock was set back. */
  readonly readAt: number;
  /** The same by the clock of the process that fetched it, in epoch milliseconds: shown alike by every process. */
  readonly fetchedAt: number;
  /** When its fetch began, by the monotonic clock; absent where another process fetched it. */
  readonly startedAt?: number;
}

/** Turns values into JSON for the shared store, and back. */
export interface Codec<Value> {
  encode(value: Value): unknown;
  /** @throws when `stored` is not an encoded value; the entry then counts as absent */
  decode(stored: unknown): Value;
}

/** The entry that the store holds; undefined for anything but an encoded value. */
export function entryOf<Value>(
  { version, value, ageMs }: Stored<unknown>,
  codec: Codec<Value>,
): Entry<Value> | undefined {
  try {
    const [fetchedAt, encoded] = value as [number, unknown];
    return { version, value: codec.decode(encoded), readAt: performance.now() - ageMs, fetchedAt };
  } catch {
    return undefined;
  }
}

/** Whether the entry was fetched less than `ageMs` ago. An entry from the future (the store's clock was set back) was not. */
export function isYoungerThan(entry: Entry<unknown>, ageMs: number): boolean {
  const age = performance.now() - entry.readAt;
  return age < ageMs && age >= 0;
}

/** Whether `stored` was fetched before the fetch of `own` began. */
export const isFromBefore = (stored: Entry<unknown>, own: Entry<unknown>): boolean =>
  stored.readAt < (own.startedAt ?? own.readAt);

export interface Keeping<Value> {
  readonly codec: Codec<Value>;
  /** How long the store keeps a value, in milliseconds. */
  readonly ttlMs: (value: Value) => number;
}

/** How long the entry may still be kept, in milliseconds. */
export const leftMs = <Value>({ value, readAt }: Entry<Value>, { ttlMs }: Keeping<Value>): number =>
  ttlMs(value) - Math.max(0, performance.now() - readAt);

/** The entry as the store takes it. `aheadMs` is at most how far the store's clock is ahead of the monotonic one. */
export function outcomeOf<Value>(entry: Entry<Value>, keeping: Keeping<Value>, aheadMs: number) {
  const { version, value, readAt, fetchedAt, startedAt = readAt } = entry;
  return {
    version,
    value: [fetchedAt, keeping.codec.encode(value)],
    ageMs: performance.now() - readAt,
    begunAt: startedAt + aheadMs,
    ttlMs: leftMs(entry, keeping),
  };
}

export function encodeFailure({ code, message, retryAfterSeconds, reason }: GatewayError) {
  return { code, message, retryAfterSeconds, reason };
}

/** Undefined for a failure that cannot be read, or whose code only another release knows. */
export function decodeFailure(stored: unknown): GatewayError | undefined {
  const { code, message, ...options } = (stored ?? {}) as GatewayError;
  return code in errorCodes ? new GatewayError(code, message, options) : undefined;
}
