import { BoundedCache } from '../process/BoundedCache.js';
import { baseKeyOf, type Store } from './Store.js';

/** A write of this process that the primary has not confirmed. */
export type PendingWrite = { readonly value: Buffer; readonly expiresAt: number } & (
  | { readonly kind: 'set' }
  /** A lease. `asked`: the primary was asked and did not answer, so it may hold the value all the same. */
  | { readonly kind: 'added'; readonly asked: boolean }
  /** Written under a lease that `owner` holds, or held, on the primary. */
  | { readonly kind: 'covered'; readonly owner: Buffer }
);

const maxEntries = 10_000;
const defaultMaxBytes = 128 * 1024 * 1024;
const deletionsPerKey = 4;
const none: readonly Buffer[] = [];

/**
 * The writes and deletions of this process while the primary store did not answer, newer than what the primary holds. They
 * are delivered once the primary is back: other processes need not fetch the same token again, and nothing deleted returns.
 */
export class WriteJournal {
  readonly #writes: BoundedCache<PendingWrite>;
  /** By key, the exact values that must be deleted from the primary. */
  readonly #deletions = new BoundedCache<readonly Buffer[]>({ max: maxEntries });

  constructor(maxBytes = defaultMaxBytes) {
    this.#writes = new BoundedCache({
      max: maxEntries,
      maxSize: maxBytes,
      sizeCalculation: ({ value }, key) => value.length + key.length + 64,
    });
  }

  get isEmpty(): boolean {
    return this.#writes.size === 0 && this.#deletions.size === 0;
  }

  /** The keys of the pending writes that begin with `prefix`. */
  keys(prefix: string): readonly string[] {
    return [...this.#writes.keys()].filter((key) => key.startsWith(prefix));
  }

  get(key: string): PendingWrite | undefined {
    const write = this.#writes.get(key);
    return write && write.expiresAt > performance.now() ? write : undefined;
  }

  add(key: string, write: PendingWrite): void {
    this.#writes.set(key, { ...write, value: Buffer.from(write.value) });
  }

  /** Called before `write` is sent to the primary: a delivery in progress must not overwrite it with an older value. */
  supersede(key: string, write: PendingWrite): void {
    this.#deletions.delete(key);
    if (this.#writes.has(key)) this.add(key, write);
  }

  addDeletion(key: string, expected: Buffer): void {
    const earlier = this.deletions(key);
    this.#deletions.set(key, [...earlier.slice(1 - deletionsPerKey), Buffer.from(expected)]);
  }

  /**
   * The values under `key` that were deleted here and may still be on the primary. Call this before reading the primary: its
   * answer may date from before a deletion is delivered, and by then the deletion is no longer listed here.
   */
  deletions(key: string): readonly Buffer[] {
    return this.#deletions.get(key) ?? none;
  }

  forgetWrite(key: string): void {
    this.#writes.delete(key);
  }

  forget(key: string): void {
    this.forgetWrite(key);
    this.#deletions.delete(key);
  }

  close(): void {
    this.#writes.clear();
    this.#deletions.clear();
  }

  /** Delivers what is pending; deletes unwanted writes on `primary`. Rejects at the first failure and keeps the rest. */
  async deliver(primary: Store, isUnwanted: (key: string) => Promise<boolean>): Promise<void> {
    const deliverWrites = async (kinds: readonly PendingWrite['kind'][]) => {
      for (const [key, write] of [...this.#writes].filter(([, { kind }]) => kinds.includes(kind))) {
        const isDropped = await isUnwanted(key);
        if (this.#writes.peek(key) !== write) continue;
        if (isDropped) this.#drop(key, write);
        else await this.#deliverWrite(key, write, primary);
      }
    };
    await deliverWrites(['covered']); // before the deletions, which may release the leases that cover these writes
    await this.#deliverDeletions(primary);
    await deliverWrites(['set', 'added', 'covered']);
    await this.#deliverDeletions(primary); // of the writes dropped above
  }

  /** Drops a write, and deletes it on the primary, which may hold it if only the answer was lost. */
  #drop(key: string, { value }: PendingWrite): void {
    this.addDeletion(key, value);
    this.forgetWrite(key);
  }

  async #deliverDeletions(primary: Store): Promise<void> {
    for (const [key, deletions] of [...this.#deletions]) {
      for (const expected of deletions) await primary.compareAndDelete(key, expected);
      if (this.#deletions.peek(key) === deletions) this.#deletions.delete(key);
    }
  }

  async #deliverWrite(key: string, write: PendingWrite, primary: Store): Promise<void> {
    const { value, kind } = write;
    const ttlMs = write.expiresAt - performance.now();
    if (ttlMs > 0) {
      if (kind === 'set') await primary.set(key, value, ttlMs);
      const isSettled =
        kind === 'covered' && (await primary.settle(baseKeyOf(key), write.owner, { key, value, ttlMs }));
      // If the lease was lost, another process may have written since: then writes only if there is nothing.
      if (kind !== 'set' && !isSettled) await primary.claim(key, value, ttlMs);
    }
    const present = this.#writes.peek(key);
    if (present === write) this.forgetWrite(key);
    // A write that was deleted here during its delivery, such as a released lease, must not stay on the primary.
    else if ((kind === 'added' || !present) && !present?.value.equals(value))
      await primary.compareAndDelete(key, value);
  }
}
