import { type Holder, rateLimited } from './Ledger.js';

export interface FairQueueOptions {
  /** Most at once for one holder. Callers without an identity are bounded by `perProcess` alone. */
  readonly perHolder: number;
  readonly perProcess: number;
  /** Most that one holder, or all callers without an identity together, may have waiting. */
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  /** Called for each arrival, also for those that wait or are refused. */
  readonly onEnter?: (holder: Holder) => void;
}

/** A bounded number of places for concurrent work; no holder gets more than its share. Work waits while it has no place. */
export class FairQueue {
  readonly #running = new Map<Holder, number>();
  /** Functions that begin waiting work, in order of arrival. A holder whose turn it was moves to the end. No set is empty. */
  readonly #waiting = new Map<Holder, Set<() => void>>();
  #total = 0;
  #whenIdle: (() => void)[] = [];

  constructor(private readonly options: FairQueueOptions) {}

  /**
   * Runs `work` in a place of its own, at once when one is free. Also throws what `work` throws.
   * @throws GatewayError RATE_LIMITED (429) when too much of the holder's work waits already, or the wait took too long
   */
  async run<T>(holder: Holder, work: () => T | Promise<T>): Promise<T> {
    const { onEnter } = this.options;
    onEnter?.(holder);
    if (this.#hasPlace(holder)) this.#count(holder, 1);
    else await this.#wait(holder);
    try {
      return await work();
    } finally {
      this.#count(holder, -1);
      this.#beginNext();
    }
  }

  /** Resolves once no work runs or waits. */
  async whenIdle(): Promise<void> {
    if (this.#total > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #wait(holder: Holder): Promise<void> {
    const { maxWaiting, maxWaitMs } = this.options;
    const waiting = this.#waiting.get(holder) ?? new Set();
    if (waiting.size >= maxWaiting) throw this.#refused(holder);
    this.#waiting.set(holder, waiting);
    return new Promise((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        waiting.delete(begin);
        if (waiting.size === 0) this.#waiting.delete(holder);
        reject(this.#refused(holder));
      }, maxWaitMs);
      waiting.add(begin);
    });
  }

  /** Gives the place that has become free to the first holder in line that may have it. */
  #beginNext(): void {
    for (const [holder, waiting] of this.#waiting) {
      const [begin] = waiting;
      if (begin === undefined || !this.#hasPlace(holder)) continue;
      waiting.delete(begin);
      this.#waiting.delete(holder);
      if (waiting.size > 0) this.#waiting.set(holder, waiting);
      this.#count(holder, 1);
      begin();
      break;
    }
    if (this.#total === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  #count(holder: Holder, change: 1 | -1): void {
    this.#total += change;
    const running = (this.#running.get(holder) ?? 0) + change;
    if (running > 0) this.#running.set(holder, running);
    else this.#running.delete(holder);
  }

  #hasPlace(holder: Holder): boolean {
    const { perProcess } = this.options;
    return this.#total < perProcess && (this.#running.get(holder) ?? 0) < this.#most(holder);
  }

  #most(holder: Holder): number {
    return holder === undefined ? this.options.perProcess : this.options.perHolder;
  }

  #refused(holder: Holder) {
    const most = `${this.#most(holder)} reads and creations at the service at once per caller`;
    return rateLimited(`At most ${most}, and ${this.options.maxWaiting} waiting`, { onlyFor: { holder } });
  }
}
