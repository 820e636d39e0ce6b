import { type Runtime, realRuntime } from '../process/Runtime.js';
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
  /** Whether holders compete: each then has only a sixteenth of its places, but at least one. */
  readonly isContended?: () => boolean;
  readonly runtime?: Runtime;
}

/**
 * A bounded number of places for concurrent work; no holder gets more than its share. Work waits while no place is free. Free
 * places go to the holders in turn, so a holder with much work waiting delays the others by at most one place each.
 */
export class FairQueue {
  readonly #running = new Map<Holder, number>();
  /** Functions that begin waiting work: holders in the order of their turns, work in order of arrival. No set is empty. */
  readonly #waiting = new Map<Holder, Set<() => void>>();
  #total = 0;
  #whenIdle: (() => void)[] = [];

  constructor(private readonly options: FairQueueOptions) {}

  /**
   * Runs `work` in a place of its own, at once when one is free. Also throws what `work` throws.
   * @throws GatewayError RATE_LIMITED (429) when too much of the holder's work waits already, or the wait took too long
   */
  async run<T>(holder: Holder, work: () => T | Promise<T>): Promise<T> {
    const { onEnter, perProcess, maxWaiting } = this.options;
    onEnter?.(holder);
    const waiting = this.#waiting.get(holder)?.size ?? 0;
    if (waiting === 0 && this.#total < perProcess && this.#hasShare(holder)) this.#count(holder, 1);
    else if (waiting < maxWaiting) await this.#wait(holder);
    else throw this.#refused(holder);
    try {
      return await work();
    } finally {
      this.#leave(holder);
    }
  }

  /** Resolves once no work runs or waits. */
  async whenIdle(): Promise<void> {
    if (this.#total > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #wait(holder: Holder): Promise<void> {
    const { runtime = realRuntime, maxWaitMs } = this.options;
    const waiting = this.#waiting.get(holder) ?? new Set();
    this.#waiting.set(holder, waiting);
    return new Promise((resolve, reject) => {
      const begin = () => {
        runtime.clearTimer(timer);
        resolve();
      };
      const timer = runtime.setTimeout(() => {
        waiting.delete(begin);
        if (waiting.size === 0) this.#waiting.delete(holder);
        reject(this.#refused(holder));
      }, maxWaitMs);
      waiting.add(begin);
    });
  }

  #count(holder: Holder, change: 1 | -1): void {
    this.#total += change;
    const running = this.#runningOf(holder) + change;
    if (running > 0) this.#running.set(holder, running);
    else this.#running.delete(holder);
  }

  #leave(holder: Holder): void {
    if (!this.#hasShare(holder)) this.#moveToEnd(holder); // it may run work again: it joins the end of the line
    this.#count(holder, -1);
    while (this.#total < this.options.perProcess) if (!this.#beginNext()) break;
    if (this.#total === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  /** Begins work of the first holder in line that has a share; the holder moves to the end. False when there is none. */
  #beginNext(): boolean {
    for (const [holder, waiting] of this.#waiting) {
      const [begin] = waiting;
      if (begin === undefined || !this.#hasShare(holder)) continue;
      waiting.delete(begin);
      this.#moveToEnd(holder);
      this.#count(holder, 1);
      begin();
      return true;
    }
    return false;
  }

  #moveToEnd(holder: Holder): void {
    const waiting = this.#waiting.get(holder);
    this.#waiting.delete(holder);
    if (waiting !== undefined && waiting.size > 0) this.#waiting.set(holder, waiting);
  }

  /** A holder that runs nothing may always begin work, so that the end of its work always admits its next. */
  #hasShare(holder: Holder): boolean {
    const running = this.#runningOf(holder);
    const most = this.#most(holder);
    return running === 0 || (running < most && (running < most / 16 || !this.options.isContended?.()));
  }

  #runningOf(holder: Holder): number {
    return this.#running.get(holder) ?? 0;
  }

  #most(holder: Holder): number {
    return holder === undefined ? this.options.perProcess : this.options.perHolder;
  }

  #refused(holder: Holder) {
    const most = `${this.#most(holder)} reads and creations at the service at once per caller`;
    return rateLimited(`At most ${most}, and ${this.options.maxWaiting} waiting`, { onlyFor: { holder } });
  }
}
