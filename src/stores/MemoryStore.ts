import { BoundedCache } from '../process/BoundedCache.js';
import { leaseKeyOf, type Store, type StoreEntry, type Turn } from './Store.js';
import { StoreError } from './StoreError.js';

type Entry = { readonly value: Buffer; readonly expiresAt: number };

/** A store inside this process, for `memory:`. Evicts the least recently used entries. */
export class MemoryStore implements Store {
  readonly kind = 'memory';
  readonly degraded = false;
  readonly takeUnsettled = () => false;
  readonly #entries: BoundedCache<Entry>;
  #closed = false;

  constructor(options: { maxEntries?: number; maxBytes?: number } = {}) {
    const { maxEntries: max = 100_000, maxBytes: maxSize = 128 * 1024 * 1024 } = options;
    const sizeCalculation = ({ value }: Entry, key: string) => value.length + key.length + 64;
    this.#entries = new BoundedCache({ max, maxSize, sizeCalculation });
  }

  async get(key: string): Promise<Buffer | undefined> {
    const value = this.#live(key)?.value;
    return value && Buffer.from(value);
  }

  async set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    this.#write(key, value, performance.now() + ttlMs);
  }

  async claim(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    if (this.#live(key)) return false;
    this.#write(key, value, performance.now() + ttlMs);
    return true;
  }

  async acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Promise<Turn> {
    const entry = this.#live(key)?.value;
    if (entry && !refused?.equals(entry)) return { state: 'found', entry: Buffer.from(entry) };
    const holder = this.#live(leaseKeyOf(key))?.value;
    if (holder) return { state: 'held', owner: Buffer.from(holder) };
    this.#write(leaseKeyOf(key), owner, performance.now() + ttlMs);
    return { state: 'taken' };
  }

  async renew(key: string, owner: Buffer, ttlMs: number): Promise<boolean> {
    if (!this.#live(leaseKeyOf(key))?.value.equals(owner)) return false;
    this.#write(leaseKeyOf(key), owner, performance.now() + ttlMs);
    return true;
  }

  async settle(key: string, owner: Buffer, entry: StoreEntry): Promise<boolean> {
    if (!this.#live(leaseKeyOf(key))?.value.equals(owner)) return false;
    this.#write(entry.key, entry.value, performance.now() + entry.ttlMs);
    return this.compareAndDelete(leaseKeyOf(key), owner);
  }

  async compareAndDelete(key: string, expected: Buffer): Promise<boolean> {
    if (!this.#live(key)?.value.equals(expected)) return false;
    this.#entries.delete(key);
    return true;
  }

  async increment(key: string, by: number, ttlMs: number): Promise<number> {
    const entry = this.#live(key);
    const held = entry && countIn(entry.value);
    const count = (held ?? 0) + by;
    const expiresAt = entry && held !== undefined ? entry.expiresAt : performance.now() + ttlMs;
    this.#write(key, Buffer.from(String(count)), expiresAt);
    return count;
  }

  async list(prefix: string): Promise<readonly string[]> {
    return [...this.#entries.keys()].filter((key) => key.startsWith(prefix) && this.#live(key));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#entries.clear();
  }

  #live(key: string): Entry | undefined {
    if (this.#closed) throw new StoreError('closed');
    const entry = this.#entries.get(key);
    if (entry && entry.expiresAt > performance.now()) return entry;
    if (entry) this.#entries.delete(key);
    return undefined;
  }

  /** Copies, so that reusing a buffer does not change what is stored. */
  #write(key: string, value: Buffer, expiresAt: number): void {
    if (this.#closed) throw new StoreError('closed');
    this.#entries.set(key, { value: Buffer.from(value), expiresAt });
  }
}

/** The count in `value`, which is decimal text; undefined for anything else. */
export function countIn(value: Buffer): number | undefined {
  return /^\d{1,15}$/.test(value.toString('latin1')) ? Number(value.toString('latin1')) : undefined;
}
