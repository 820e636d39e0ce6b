import type { Store, StoreEntry, Turn } from '../../cache/stores/Store.js';
import { preciseNow } from './Span.js';

type Operation = 'get' | 'set' | 'claim' | 'acquire' | 'settle' | 'compareAndDelete' | 'increment' | 'waitForDelete';

/** A {@link Store} whose operations are told to `onDone`, with when they began in epoch milliseconds. Keys are not. */
export class TracedStore implements Store {
  readonly kind: Store['kind'];
  readonly #store: Store;
  readonly #onDone: (operation: Operation, startedAt: number, failed: boolean) => void;

  constructor(store: Store, onDone: (operation: Operation, startedAt: number, failed: boolean) => void) {
    this.kind = store.kind;
    this.#store = store;
    this.#onDone = onDone;
  }

  get(key: string): Promise<Buffer | undefined> {
    return this.#timed('get', () => this.#store.get(key));
  }

  set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    return this.#timed('set', () => this.#store.set(key, value, ttlMs));
  }

  claim(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    return this.#timed('claim', () => this.#store.claim(key, value, ttlMs));
  }

  acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Promise<Turn> {
    return this.#timed('acquire', () => this.#store.acquire(key, owner, ttlMs, refused));
  }

  settle(key: string, owner: Buffer, entry: StoreEntry): Promise<boolean> {
    return this.#timed('settle', () => this.#store.settle(key, owner, entry));
  }

  compareAndDelete(key: string, expected: Buffer): Promise<boolean> {
    return this.#timed('compareAndDelete', () => this.#store.compareAndDelete(key, expected));
  }

  increment(key: string, by: number, ttlMs: number): ReturnType<Store['increment']> {
    return this.#timed('increment', () => this.#store.increment(key, by, ttlMs));
  }

  waitForDelete(key: string, timeoutMs: number): Promise<void> {
    return this.#timed('waitForDelete', () => this.#store.waitForDelete(key, timeoutMs));
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #timed<T>(operation: Operation, work: () => Promise<T>): Promise<T> {
    const startedAt = preciseNow();
    let failed = true;
    try {
      const result = await work();
      failed = false;
      return result;
    } finally {
      this.#onDone(operation, startedAt, failed);
    }
  }
}
