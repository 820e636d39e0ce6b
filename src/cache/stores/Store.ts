/**
 * The seam every cache tier below the process is written against. A store moves bytes: what it is given is already
 * encrypted, and its keys are already keyed hashes (see `sealing.ts`), so no implementation can leak anything.
 *
 * Every method may reject when the store cannot be reached; `FallbackStore` turns that into a degraded, local answer,
 * except for counters.
 */
export interface Store {
  readonly kind: 'memory' | 'lmdb' | 'redis';

  /** The bytes under `key`, or undefined when absent or expired. A value of a foreign shape is absent, not an error. */
  get(key: string): Promise<Buffer | undefined>;

  /** The same at once, in a store that reads from memory. */
  getNow?(key: string): Buffer | undefined;

  /** Writes `value`; it is gone after `ttlMs` milliseconds. */
  set(key: string, value: Buffer, ttlMs: number): Promise<void>;

  /** Writes `value` only when `key` is absent or expired; tells whether it did. Atomic over the whole fleet: a lease is taken so. */
  setIfAbsent(key: string, value: Buffer, ttlMs: number): Promise<boolean>;

  /**
   * The same, and true only when the whole fleet sees it.
   *
   * @throws StoreError when the shared store cannot tell; what it may have written all the same is deleted when it can be
   */
  claim(key: string, value: Buffer, ttlMs: number): Promise<boolean>;

  /** Writes `value` only while the lease of `key`, under {@link leaseKeyOf}, holds exactly `owner`; tells whether it did. Atomic. */
  setIfHolding(key: string, value: Buffer, ttlMs: number, owner: Buffer): Promise<boolean>;

  /** Deletes `key` only when it holds exactly `expected`; tells whether it did, and wakes {@link waitForDelete}. Atomic. */
  compareAndDelete(key: string, expected: Buffer): Promise<boolean>;

  /** Adds `by` to the counter under `key`, created with `ttlMs` to live when absent. Returns the new count and the counter's remaining life. Atomic. */
  increment(key: string, by: number, ttlMs: number): Promise<{ readonly count: number; readonly resetsInMs: number }>;

  /**
   * Resolves when `key` was compared-and-deleted by any process, at the latest after `timeoutMs`; it never rejects. May also
   * resolve early for no reason: the caller looks again and decides.
   */
  waitForDelete(key: string, timeoutMs: number): Promise<void>;

  /** Ends connections, timers and files. Idempotent. */
  close(): Promise<void>;
}

const leaseSuffix = ':lease';

/** The key of the lease that covers the entry under `key`. */
export function leaseKeyOf(key: string): string {
  return key + leaseSuffix;
}

/** The key of the entry that the lease under `key` covers; undefined when `key` is not that of a lease. */
export function coveredBy(key: string): string | undefined {
  return key.endsWith(leaseSuffix) ? key.slice(0, -leaseSuffix.length) : undefined;
}
