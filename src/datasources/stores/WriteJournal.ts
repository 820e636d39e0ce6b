import type { MemoryStore } from './MemoryStore.js';
import type { Store } from './Store.js';

/** Something done locally that the primary has not heard of. The values themselves are in the local store. */
export type PendingWrite =
  | { readonly kind: 'set'; readonly expiresAt: number }
  | { readonly kind: 'added'; readonly expiresAt: number }
  | { readonly kind: 'deleted'; readonly expected: Buffer }
  | { readonly kind: 'counted'; readonly by: number; readonly expiresAt: number };

/**
 * What this process wrote while the primary store did not take it. Until it is delivered, a pending write is newer than
 * what the primary holds; once the primary is back it is told, so that a token fetched during an outage is not fetched again by
 * the other processes, and a lease or a token given up during the outage does not come back from the dead.
 */
export class WriteJournal {
  readonly #pending = new Map<string, PendingWrite>();
  readonly #maxEntries: number;
  readonly #now: () => number;

  constructor(maxEntries: number, now: () => number) {
    this.#maxEntries = maxEntries;
    this.#now = now;
  }

  get size(): number {
    return this.#pending.size;
  }

  get(key: string): PendingWrite | undefined {
    return this.#pending.get(key);
  }

  /** Notes a write, in place of an earlier one of the same key. The oldest are forgotten when there are too many. */
  add(key: string, write: PendingWrite): void {
    this.#pending.delete(key);
    this.#pending.set(key, write);
    for (const oldest of this.#pending.keys()) {
      if (this.#pending.size <= this.#maxEntries) break;
      this.#pending.delete(oldest);
    }
  }

  /** Adds to a counter the primary could not count. */
  count(key: string, by: number, ttlMs: number): void {
    const earlier = this.#pending.get(key);
    const counted = earlier?.kind === 'counted' && earlier.expiresAt > this.#now() ? earlier : undefined;
    const expiresAt = counted?.expiresAt ?? this.#now() + ttlMs;
    this.add(key, { kind: 'counted', by: (counted?.by ?? 0) + by, expiresAt });
  }

  forget(key: string): void {
    this.#pending.delete(key);
  }

  /** Whether the primary's `value` under `key` was deleted here in the meantime. */
  isDeleted(key: string, value: Buffer): boolean {
    const write = this.#pending.get(key);
    return write?.kind === 'deleted' && write.expected.equals(value);
  }

  /**
   * Tells `primary` everything pending, one by one in the order it happened. Rejects at the first failure and keeps the rest.
   * What was delivered leaves `local`, so that the primary is again the only truth about it.
   */
  async deliver(primary: Store, local: MemoryStore): Promise<void> {
    for (const [key, write] of [...this.#pending]) {
      if (this.#pending.get(key) !== write) continue;
      await this.#deliverOne(key, write, primary, local);
    }
  }

  async #deliverOne(key: string, write: PendingWrite, primary: Store, local: MemoryStore): Promise<void> {
    const settled = () => {
      if (this.#pending.get(key) === write) this.#pending.delete(key);
    };
    if (write.kind === 'deleted') {
      await primary.compareAndDelete(key, write.expected);
      return settled();
    }
    const value = await local.get(key);
    const leftMs = write.expiresAt - this.#now();
    if (!value || leftMs <= 0) return settled();
    if (write.kind === 'set') await primary.set(key, value, leftMs);
    if (write.kind === 'added') await primary.setIfAbsent(key, value, leftMs);
    if (write.kind === 'counted') await primary.increment(key, write.by, leftMs);
    if (this.#pending.get(key) === write) {
      this.#pending.delete(key);
      await local.compareAndDelete(key, value);
      return;
    }
    // Released while we were telling the primary of it: it must not stay there as a lease nobody holds.
    if (write.kind === 'added' && !(await local.get(key))) await primary.compareAndDelete(key, value);
  }
}
