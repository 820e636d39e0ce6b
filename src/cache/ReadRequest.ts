import type { Entry, Keeping } from './Entry.js';
import type { SealedStore, SubjectField } from './SealedStore.js';

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

export interface LeasedCacheOptions<Value> extends Keeping<Value> {
  readonly store: SealedStore;
  /** The label of metrics. */
  readonly kind: string;
  /** Most bytes of the entries that memory keeps. */
  readonly memoryBytes: number;
  /** Time limit of a fetch, in milliseconds. The lease is renewed until the fetch has ended. */
  readonly workMs: number;
  /**
   * Runs a read once there is a place for it. Readers that join a read in flight need none.
   * @throws what the read throws, or GatewayError RATE_LIMITED when no place comes free in time
   */
  readonly inQueue: <T>(holder: string | undefined, read: () => T | Promise<T>) => Promise<T>;
  /** The field of the store that holds the entry with this id. */
  readonly fieldOf: (id: string) => SubjectField;
  /** Told of each entry that memory takes: one that was fetched, or a newer one of the store. */
  readonly onKept: (id: string, entry: Entry<Value>) => void;
  readonly onRead: (kind: string, tier: CacheTier) => void;
  /** Told of the bytes of each entry that memory takes, and for whom it was read: the work of a read grows with them. */
  readonly onBytes?: ((holder: string | undefined, bytes: number) => void) | undefined;
}
