import { FallbackStore } from '../../src/stores/FallbackStore.js';
import type { Store, StoreEntry } from '../../src/stores/Store.js';
import { StoreError } from '../../src/stores/StoreError.js';

/** The connection of one process to a shared store. While silent, it passes operations on but delivers no answer. */
export class StoreLink implements Store {
  readonly kind: Store['kind'];
  readonly #shared: Store;
  state: 'up' | 'down' | 'silent' = 'up';
  /** The store that the process uses, over this connection. */
  readonly store: FallbackStore;
  #onRecovered: () => void = () => {};

  constructor(shared: Store) {
    this.kind = shared.kind;
    this.#shared = shared;
    this.store = new FallbackStore(this, { limitMs: 20, probeEveryMs: 5, onRecovered: () => this.#onRecovered() });
  }

  /** Restores the connection; resolves when the process has noticed. */
  async restore(): Promise<void> {
    const recovered = new Promise<void>((resolve) => {
      this.#onRecovered = resolve;
    });
    this.state = 'up';
    if (this.store.degraded) await recovered;
  }

  get = (key: string) => this.#pass(() => this.#shared.get(key));
  set = (key: string, value: Buffer, ttlMs: number) => this.#pass(() => this.#shared.set(key, value, ttlMs));
  claim = (key: string, value: Buffer, ttlMs: number) => this.#pass(() => this.#shared.claim(key, value, ttlMs));
  acquire = (key: string, owner: Buffer, ttlMs: number, refused?: Buffer) =>
    this.#pass(() => this.#shared.acquire(key, owner, ttlMs, refused));
  renew = (key: string, owner: Buffer, ttlMs: number) => this.#pass(() => this.#shared.renew(key, owner, ttlMs));
  settle = (key: string, owner: Buffer, entry: StoreEntry) => this.#pass(() => this.#shared.settle(key, owner, entry));
  compareAndDelete = (key: string, expected: Buffer) => this.#pass(() => this.#shared.compareAndDelete(key, expected));
  increment = (key: string, by: number, ttlMs: number) => this.#pass(() => this.#shared.increment(key, by, ttlMs));
  list = (prefix: string) => this.#pass(() => this.#shared.list(prefix));
  close = () => this.#shared.close();

  async #pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.state === 'down') throw new StoreError('unreachable');
    const answer = await work();
    if (this.state === 'silent') await new Promise(() => {});
    return answer;
  }
}
