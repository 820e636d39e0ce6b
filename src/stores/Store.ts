/** What {@link Store.acquire} found or took. */
export type Turn<Entry = Buffer> =
  | { readonly state: 'found'; readonly entry: Entry }
  | { readonly state: 'taken' }
  | { readonly state: 'held'; readonly owner: Buffer };

export interface StoreEntry {
  readonly key: string;
  readonly value: Buffer;
  readonly ttlMs: number;
}

/**
 * The interface of every store below the cache. Values are already encrypted and keys are keyed hashes (see
 * `sealing.ts`), so no implementation can leak anything. Times are in milliseconds. Every method may reject with a
 * `StoreError`; `FallbackStore` then answers from this process, except for counters, claims and lists.
 */
export interface Store {
  readonly kind: 'memory' | 'lmdb' | 'redis';

  /** The bytes under `key`. Undefined when absent, expired, or of a foreign type. */
  get(key: string): Promise<Buffer | undefined>;

  set(key: string, value: Buffer, ttlMs: number): Promise<void>;

  /**
   * Writes `value` if `key` is absent; tells whether it did. Atomic, and true only when the whole fleet sees it.
   *
   * @throws StoreError when the shared store does not answer; a value that it may have written is deleted later
   */
  claim(key: string, value: Buffer, ttlMs: number): Promise<boolean>;

  /** The entry under `key`. If there is none, or it equals `refused`, takes the lease of `key` for `owner` if free. Atomic. */
  acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Promise<Turn>;

  /**
   * Extends the lease of `key` to `ttlMs` from now if `owner` holds it; tells whether it does. Atomic. Never takes a lease:
   * one that expired, was deleted or has another owner is lost.
   */
  renew(key: string, owner: Buffer, ttlMs: number): Promise<boolean>;

  /**
   * If `owner` holds the lease of `key`, writes `entry` and releases the lease; tells whether it did. Atomic. The key of the
   * entry is `key` or derived from it.
   */
  settle(key: string, owner: Buffer, entry: StoreEntry): Promise<boolean>;

  /** Deletes `key` if it holds exactly `expected`; tells whether it did. Atomic. */
  compareAndDelete(key: string, expected: Buffer): Promise<boolean>;

  /** Adds `by` to the counter under `key` and returns the count. A new counter lives for `ttlMs`. Atomic. */
  increment(key: string, by: number, ttlMs: number): Promise<number>;

  /** The keys that begin with `prefix`. Keys written or deleted meanwhile may be missing. Slow when the store is large. */
  list(prefix: string): Promise<readonly string[]>;

  /** Ends connections, timers and files. Idempotent. */
  close(): Promise<void>;
}

/** The key of the lease that covers the entry under `key`. */
export const leaseKeyOf = (key: string): string => `${key}:lease`;

export const isLeaseKey = (key: string): boolean => key.endsWith(':lease');

/** The key of the note that tells why the work of `owner`, who held the lease of `key`, failed. */
export const failureKeyOf = (key: string, owner: string): string => `${key}:failure:${owner}`;

/** The key that `key` was derived from, or `key` itself: what comes before the first colon. */
export const baseKeyOf = (key: string): string => key.split(':', 1)[0] as string;
