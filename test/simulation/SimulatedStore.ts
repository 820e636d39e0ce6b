import { countIn } from '../../src/stores/MemoryStore.js';
import { leaseKeyOf, type StoreEntry, type Turn } from '../../src/stores/Store.js';

interface Held {
  readonly value: Buffer;
  readonly expiresAt: number;
}

const rememberedMs = 5000;

/** The store server that all processes share. Each operation takes effect at one moment. Times are virtual. */
export class SimulatedStore {
  #entries = new Map<string, Held>();
  /** Recent changes, so that a failover can lose them. */
  #undo: { readonly at: number; readonly key: string; readonly before: Held | undefined }[] = [];

  constructor(private readonly now: () => number) {}

  get(key: string): Buffer | undefined {
    const held = this.#entries.get(key);
    return held && held.expiresAt > this.now() ? held.value : undefined;
  }

  set(key: string, value: Buffer, ttlMs: number): void {
    this.#put(key, { value: Buffer.from(value), expiresAt: this.now() + ttlMs });
  }

  claim(key: string, value: Buffer, ttlMs: number): boolean {
    if (this.get(key)) return false;
    this.set(key, value, ttlMs);
    return true;
  }

  acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Turn {
    const entry = this.get(key);
    if (entry && !refused?.equals(entry)) return { state: 'found', entry };
    const holder = this.get(leaseKeyOf(key));
    if (holder) return { state: 'held', owner: holder };
    this.set(leaseKeyOf(key), owner, ttlMs);
    return { state: 'taken' };
  }

  renew(key: string, owner: Buffer, ttlMs: number): boolean {
    if (!this.get(leaseKeyOf(key))?.equals(owner)) return false;
    this.set(leaseKeyOf(key), owner, ttlMs);
    return true;
  }

  settle(key: string, owner: Buffer, entry: StoreEntry): boolean {
    if (!this.get(leaseKeyOf(key))?.equals(owner)) return false;
    this.set(entry.key, entry.value, entry.ttlMs);
    return this.compareAndDelete(leaseKeyOf(key), owner);
  }

  compareAndDelete(key: string, expected: Buffer): boolean {
    if (!this.get(key)?.equals(expected)) return false;
    this.#put(key, undefined);
    return true;
  }

  increment(key: string, by: number, ttlMs: number): number {
    const held = this.get(key);
    const count = (held && countIn(held)) ?? 0;
    const expiresAt = held ? (this.#entries.get(key) as Held).expiresAt : this.now() + ttlMs;
    this.#put(key, { value: Buffer.from(String(count + by)), expiresAt });
    return count + by;
  }

  list(prefix: string): readonly string[] {
    return [...this.#entries.keys()].filter((key) => key.startsWith(prefix) && this.get(key));
  }

  empty(): void {
    this.#entries.clear();
    this.#undo = [];
  }

  /** A replica takes over that has not received the changes of the last `lagMs`. */
  failOver(lagMs: number): void {
    for (let last = this.#undo.at(-1); last && last.at > this.now() - lagMs; last = this.#undo.at(-1)) {
      this.#undo.pop();
      if (last.before) this.#entries.set(last.key, last.before);
      else this.#entries.delete(last.key);
    }
    this.#undo = [];
  }

  #put(key: string, held: Held | undefined): void {
    const now = this.now();
    this.#undo.push({ at: now, key, before: this.#entries.get(key) });
    if (this.#undo.length > 500) this.#undo = this.#undo.filter(({ at }) => at > now - rememberedMs);
    if (held) this.#entries.set(key, held);
    else this.#entries.delete(key);
  }
}
