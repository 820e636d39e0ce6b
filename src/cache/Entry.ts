import { errorCodes, GatewayError } from '../errors/errors.js';
import type { Stored } from '../stores/Store.js';
import type { SealedStore } from './SealedStore.js';

/** A cached answer of the service. */
export interface Entry<Value> {
  /** Random: tells two fetches apart even when they brought the same value. */
  readonly version: string;
  readonly value: Value;
  /** When it was fetched, by the monotonic clock of this process. In the future where the store's clock was set back. */
  readonly readAt: number;
  /** The same by the clock of the process that fetched it, in epoch milliseconds: shown alike by every process. */
  readonly fetchedAt: number;
  /** When its fetch began, by the monotonic clock. Of another process, only {@link readAt} is known, which stands here, too. */
  readonly startedAt: number;
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
    const readAt = performance.now() - ageMs;
    return { version, value: codec.decode(encoded), readAt, fetchedAt, startedAt: readAt };
  } catch {
    return undefined;
  }
}

/** How long ago an entry was fetched, in milliseconds: 0 for one from the future (the store's clock was set back). */
export const ageMsOf = ({ readAt }: Pick<Entry<unknown>, 'readAt'>): number => Math.max(0, performance.now() - readAt);

/** Whether the entry was fetched less than `ageMs` ago. An entry from the future was not. */
export function isYoungerThan(entry: Entry<unknown>, ageMs: number): boolean {
  const age = performance.now() - entry.readAt;
  return age < ageMs && age >= 0;
}

/** What a reader asks of a `LeasedCache`. */
export interface ReadRequest<Value> {
  /** Whether an entry will do. One that was fetched since the reader asked always does. */
  readonly acceptable: (entry: Entry<Value>) => boolean;
  /** Asks the service until `endsAt` (monotonic) at most. */
  readonly fetch: (endsAt: number) => Promise<Value>;
  /** The read is part of work that has a place already, so it waits for none. */
  readonly hasPlace?: boolean;
  /** Who reads. A refusal that concerns another holder is not shared with this one. */
  readonly holder?: string | undefined;
}

export type CacheTier = 'memory' | 'store' | 'fetched' | 'waited';

export interface LeasedCacheOptions<Value> {
  readonly store: SealedStore;
  readonly codec: Codec<Value>;
  /** How long a stored value counts, in milliseconds. Redis has it longer, for as long as the record that it is a field of. */
  readonly ttlMs: (value: Value) => number;
  /** The kind of its entries: in the store, and as a label of metrics. */
  readonly kind: string;
  /** Most bytes of the entries that memory keeps. */
  readonly memoryBytes: number;
  /** Time limit of a fetch, in milliseconds. The lease is renewed until the fetch has ended. */
  readonly workMs: number;
  readonly calls: {
    /**
     * Runs a read once there is a place for it. Readers that join a read in flight need none.
     * @throws what the read throws, or GatewayError RATE_LIMITED when no place comes free in time
     */
    run<T>(holder: string | undefined, read: () => T | Promise<T>): Promise<T>;
  };
  /** Whom the entry with this id is about, and what tells it apart if there may be several. */
  readonly idsOf: (id: string) => readonly [subject: string, id?: string];
  /** Told of each entry that memory takes: one that was fetched, or a newer one of the store. */
  readonly onKept: (id: string, entry: Entry<Value>) => void;
  readonly onRead: (kind: string, tier: CacheTier) => void;
  /** Told of the bytes of each entry that memory takes, and for whom it was read: the work of a read grows with them. */
  readonly onBytes?: ((holder: string | undefined, bytes: number) => void) | undefined;
}

export function encodeFailure({ code, message, retryAfterSeconds, reason }: GatewayError) {
  return { code, message, retryAfterSeconds, reason };
}

/** Undefined for a failure that cannot be read, or whose code only another release knows. */
export function decodeFailure(stored: unknown): GatewayError | undefined {
  const { code, message, ...options } = (stored ?? {}) as GatewayError;
  return code in errorCodes ? new GatewayError(code, message, options) : undefined;
}
