import type { Store } from '../../src/stores/Store.js';
import { SharedStore } from '../support/stores/SharedStore.js';
import type { NodeRuntime } from './NodeRuntime.js';
import { World } from './World.js';

export type StoreOperation = Exclude<keyof Store, 'close' | 'evictionPolicy'>;

/** The store server that all processes share: a map, by the time of the world. */
export class SimulatedStore {
  #store = new SharedStore();
  /** Everything that was done to it, so that a failover can lose the last of it. */
  #done: { readonly at: number; readonly operation: StoreOperation; readonly args: readonly unknown[] }[] = [];

  constructor(private readonly now: () => number) {}

  /** Performs an operation, which takes effect at once. */
  do(operation: StoreOperation, args: readonly unknown[], at = this.now()): Promise<unknown> {
    this.#done.push({ at, operation, args });
    const before = World.running;
    World.running = { monotonicNow: () => at } as NodeRuntime;
    const work = this.#store[operation] as (...args: unknown[]) => Promise<unknown>;
    const result = work.apply(this.#store, [...args]);
    World.running = before;
    return result;
  }

  empty(): void {
    this.#store = new SharedStore();
    this.#done = [];
  }

  /** A replica takes over that has not received the changes of the last `lagMs`. */
  failOver(lagMs: number): void {
    const received = this.#done.filter(({ at }) => at <= this.now() - lagMs);
    this.empty();
    for (const { operation, args, at } of received) void this.do(operation, args, at);
  }
}
