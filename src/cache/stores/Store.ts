/** What {@link Store.acquire} found or took. */
export type Turn<Entry = Buffer> =
  | { readonly state: 'found'; readonly entry: Entry }
  | { readonly state: 'taken' }
  | { readonly state: 'held'; readonly owner: Buffer };

export interface Count {
  readonly count: number;
  /** How long the counter goes on, in milliseconds. */
  readonly resetsInMs: number;
}

/** Bytes to be kept for `ttlMs` milliseconds under `key`. */
export interface StoreEntry {
  readonly key: string;
  readonly value: Buffer;
  readonly ttlMs: number;
}

/**
 * The seam every cache tier below the process is written against. A store moves bytes: what it is given is already
 * encrypted, and its keys are already keyed hashes (see `sealing.ts`), so no implementation can leak anything.
 *
 * Every method may reject when the store cannot be reached; `FallbackStore` turns that into a degraded, local answer,
 * except for counters and claims.
 */
export interface Store {
  readonly kind: 'memory' | 'lmdb' | 'redis';

  /** The bytes under `key`, or undefined when absent or expired. A value of a foreign shape is absent, not an error. */
  get(key: string): Promise<Buffer | undefined>;

  /** Writes `value`; it is gone after `ttlMs` milliseconds. */
  set(key: string, value: Buffer, ttlMs: number): Promise<void>;

  /**
   * Writes `value` only when `key` is absent or expired; tells whether it did. Atomic, and true only when the whole fleet
   * sees it.
   *
   * @throws StoreError when the shared store cannot tell; what it may have written all the same is deleted when it can be
   */
  claim(key: string, value: Buffer, ttlMs: number): Promise<boolean>;

  /**
   * The entry under `key`. Without one, or when it is exactly `refused`, takes the lease of `key` for `owner`, or says who
   * holds it. Atomic: who gets the lease knows that nobody has settled since.
   */
  acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Promise<Turn>;

  /**
   * Writes `entry` and ends the lease of `key`, if `owner` holds it; tells whether it did. The key of the entry is `key`
   * or one derived from it, as by {@link failureKeyOf}. Atomic; wakes {@link waitForDelete} of the lease.
   */
  settle(key: string, owner: Buffer, entry: StoreEntry): Promise<boolean>;

  /** Deletes `key` only when it holds exactly `expected`; tells whether it did, and wakes {@link waitForDelete}. Atomic. */
  compareAndDelete(key: string, expected: Buffer): Promise<boolean>;

  /** Adds `by` to the counter under `key`, created with `ttlMs` to live when absent. Atomic. */
  increment(key: string, by: number, ttlMs: number): Promise<Count>;

  /**
   * Resolves when `key` was deleted by any process, at the latest after `timeoutMs`; it never rejects. May also resolve
   * early for no reason: the caller looks again and decides.
   */
  waitForDelete(key: string, timeoutMs: number): Promise<void>;

  /** Ends connections, timers and files. Idempotent. */
  close(): Promise<void>;
}

/** The key of the lease that covers the entry under `key`. */
export function leaseKeyOf(key: string): string {
  return `${key}:lease`;
}

/** The key of the note that tells why the work of `owner`, who held the lease of `key`, failed. */
export function failureKeyOf(key: string, owner: string): string {
  return `${key}:failure:${owner}`;
}

/** The key that `key` was derived from, or `key` itself: what comes before the first colon. */
export function baseKeyOf(key: string): string {
  return key.split(':', 1)[0] as string;
}
