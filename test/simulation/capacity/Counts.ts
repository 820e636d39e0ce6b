import type { ServiceCall } from '../SimulatedService.js';
import type { SimulatedStore } from '../SimulatedStore.js';

/** Length of a window, in milliseconds. */
export const windowMs = 10_000;

/** The figures of one window. Times are sums over all requests or calls, in milliseconds. */
export interface Window {
  requests: number;
  failed: number;
  tokenCalls: number;
  jobCalls: number;
  /** Store operations for taxpayers and jobs. */
  storeOperations: number;
  /** Store operations that each process makes regardless of load. */
  ownOperations: number;
  waitedMs: number;
  calledMs: number;
}

type Figure = keyof Window;

/** Counts what happens, per window. */
export class Counts {
  readonly windows: Window[] = [];
  readonly failures = new Map<string, number>();
  readonly operations = new Map<string, number>();
  /** Keys that belong to no taxpayer or job. */
  readonly ownKeys = new Set<string>();
  readonly #calls: { readonly call: ServiceCall; readonly at: number }[] = [];

  /** @param now milliseconds since the load began; negative before, when nothing is counted */
  constructor(private readonly now: () => number) {}

  /** A request begins. The caller calls the returned function at its end, with the error code if it failed. */
  asked(): (failure?: string) => void {
    const askedAt = this.now();
    this.#add('requests', askedAt, 1);
    return (failure) => {
      this.#spread('waitedMs', askedAt, this.now());
      if (failure === undefined) return;
      this.#add('failed', askedAt, 1);
      this.failures.set(failure, (this.failures.get(failure) ?? 0) + 1);
    };
  }

  callSent(call: ServiceCall): void {
    const at = this.now();
    this.#add(call.endpoint === 'token' ? 'tokenCalls' : 'jobCalls', at, 1);
    if (at >= 0) this.#calls.push({ call, at });
  }

  /** Adds the durations of the calls so far to the windows. */
  finish(): void {
    for (const { call, at } of this.#calls.splice(0)) {
      this.#spread('calledMs', at, at + (call.endedAt ?? call.sentAt) - call.sentAt);
    }
  }

  callArrived(): void {}

  /** `store`, with each operation counted. */
  ofStore(store: SimulatedStore): SimulatedStore {
    return new Proxy(store, {
      get: (target, name) => {
        const operation = target[name as 'get'];
        return (...args: Parameters<typeof operation>) => {
          this.#operation(String(name), args[0]);
          return operation.apply(target, args);
        };
      },
    });
  }

  #operation(name: string, key: string): void {
    const isOwn = key.startsWith('probe-') || this.ownKeys.has(key);
    this.#add(isOwn ? 'ownOperations' : 'storeOperations', this.now(), 1);
    if (!isOwn) this.operations.set(name, (this.operations.get(name) ?? 0) + 1);
  }

  #add(figure: Figure, at: number, by: number): void {
    if (at < 0) return;
    const window = this.#window(Math.floor(at / windowMs));
    window[figure] += by;
  }

  /** Adds the time from `since` to `end`, split between the windows it spans. */
  #spread(figure: Figure, since: number, end: number): void {
    for (let from = since; from < end; ) {
      const until = Math.min(end, (Math.floor(from / windowMs) + 1) * windowMs);
      this.#add(figure, from, until - from);
      from = until;
    }
  }

  #window(n: number): Window {
    while (this.windows.length <= n) {
      this.windows.push({
        ...{ requests: 0, failed: 0, tokenCalls: 0, jobCalls: 0, storeOperations: 0, ownOperations: 0 },
        ...{ waitedMs: 0, calledMs: 0 },
      });
    }
    return this.windows[n] as Window;
  }
}
