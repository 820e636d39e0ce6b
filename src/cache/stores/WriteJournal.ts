import type { MemoryStore } from './MemoryStore.js';
import { baseKeyOf, type Store } from './Store.js';

/** Something written locally that the primary has not heard of. The values themselves are in the local store. */
export type PendingWrite = { readonly expiresAt: number } & (
  | { readonly kind: 'set' }
  /** `asked`: the primary was asked and did not answer, so it may hold the value all the same. */
  | { readonly kind: 'added'; readonly asked: boolean }
  /** Written under a lease that `owner` holds on the primary, or held. */
  | { readonly kind: 'covered'; readonly owner: Buffer }
);

const DELETIONS_PER_KEY = 4;

/**
 * What this process wrote while the primary store did not take it. Until it is delivered, a pending write is newer than
 * what the primary holds; once the primary is back it is told, so that a token fetched during an outage is not fetched
 * again by the other processes, and a lease or a token given up during the outage does not come back from the dead.
 */
export class WriteJournal {
  readonly #writes = new Map<string, PendingWrite>();
  /** Exact values that must not be on the primary any more. */
  readonly #deletions = new Map<string, readonly Buffer[]>();
  readonly #maxEntries: number;
  readonly #now: () => number;

  constructor(maxEntries: number, now: () => number) {
    this.#maxEntries = maxEntries;
    this.#now = now;
  }

  get isEmpty(): boolean {
    return this.#writes.size === 0 && this.#deletions.size === 0;
  }

  get(key: string): PendingWrite | undefined {
    return this.#writes.get(key);
  }

  /** Notes a write, in place of an earlier one of the same key. The oldest are forgotten when there are too many. */
  add(key: string, write: PendingWrite): void {
    this.#put(this.#writes, key, write);
  }

  addDeletion(key: string, expected: Buffer): void {
    const earlier = this.#deletions.get(key) ?? [];
    this.#put(this.#deletions, key, [...earlier.slice(1 - DELETIONS_PER_KEY), Buffer.from(expected)]);
  }

  /** Whether the primary's `value` under `key` was deleted here in the meantime. */
  isDeleted(key: string, value: Buffer): boolean {
    return this.#deletions.get(key)?.some((deleted) => deleted.equals(value)) ?? false;
  }

  forgetWrite(key: string): void {
    this.#writes.delete(key);
  }

  forget(key: string): void {
    this.#writes.delete(key);
    this.#deletions.delete(key);
  }

  /**
   * Tells `primary` everything pending, one by one. Rejects at the first failure and keeps the rest. What was delivered
   * leaves `local`, so that the primary is again the only truth about it.
   */
  async deliver(primary: Store, local: MemoryStore): Promise<void> {
    const deliverWrites = async (kinds: readonly PendingWrite['kind'][]) => {
      for (const [key, write] of [...this.#writes]) {
        const isPending = kinds.includes(write.kind) && this.#writes.get(key) === write;
        if (isPending) await this.#deliverWrite(key, write, primary, local);
      }
    };
    await deliverWrites(['covered']); // before the deletions: their lease may be among what is to be deleted
    for (const [key, deletions] of [...this.#deletions]) {
      for (const expected of deletions) await primary.compareAndDelete(key, expected);
      if (this.#deletions.get(key) === deletions) this.#deletions.delete(key);
    }
    await deliverWrites(['set', 'added', 'covered']);
  }

  async #deliverWrite(key: string, write: PendingWrite, primary: Store, local: MemoryStore): Promise<void> {
    const value = await local.get(key);
    const ttlMs = write.expiresAt - this.#now();
    if (value && ttlMs > 0) {
      if (write.kind === 'set') await primary.set(key, value, ttlMs);
      const isSettled =
        write.kind === 'covered' && (await primary.settle(baseKeyOf(key), write.owner, { key, value, ttlMs }));
      // When its lease is over, somebody else may have written since: then only where there is nothing.
      if (write.kind !== 'set' && !isSettled) await primary.claim(key, value, ttlMs);
    }
    if (this.#writes.get(key) === write) {
      this.#writes.delete(key);
      if (value) await local.compareAndDelete(key, value);
    } else if (value && write.kind === 'added' && !(await local.get(key))?.equals(value)) {
      // Released while the primary was being told: it must not stay there as a lease nobody holds.
      await primary.compareAndDelete(key, value);
    }
  }

  #put<T>(map: Map<string, T>, key: string, entry: T): void {
    map.delete(key);
    map.set(key, entry);
    const [oldest] = map.keys();
    if (map.size > this.#maxEntries && oldest !== undefined) map.delete(oldest);
  }
}
