import { GatewayError } from '../errors/errors.js';
import type { Holder } from './Ledger.js';

export interface FairQueueOptions {
  /** What waits here, in the plural, as refusals name it. */
  readonly things: string;
  /** Most at once for one holder. Callers without an identity are bounded by `perProcess` alone. */
  readonly perHolder: number;
  readonly perProcess: number;
  /** Most that one holder, or all callers without an identity together, may have waiting. */
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  /** Called for everybody who comes, also for those who wait or are refused. */
  readonly onEnter?: (holder: Holder) => void;
  /** Whether holders are in each other's way: each then has a sixteenth of its places. */
  readonly isContended?: () => boolean;
}

/** Begins work that waits; its place is taken already. */
type Begin = () => void;

/**
 * A bounded number of places, of which no holder gets more than its share. Work waits while there is none; free places go
 * to the holders in turn, so that a holder with much waiting delays the others by at most one place each.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #running = new Map<Holder, number>();
  /** In the order of the holders' turns, then of arrival; no set is empty. */
  readonly #waiting = new Map<Holder, Set<Begin>>();
  #total = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /**
   * Does `work` in a place of its own, at once when one is free. Throws also whatever `work` throws.
   *
   * @throws GatewayError RATE_LIMITED (429) when too much of the holder's work waits already, or the wait took too long
   */
  async run<T>(holder: Holder, work: () => T | Promise<T>): Promise<T> {
    const { onEnter, perProcess, maxWaiting } = this.#options;
    onEnter?.(holder);
    const waiting = this.#waiting.get(holder)?.size ?? 0;
    if (waiting === 0 && this.#total < perProcess && this.#hasShare(holder)) this.#take(holder);
    else if (waiting < maxWaiting) await this.#wait(holder);
    else throw this.#refused(holder);
    try {
      return await work();
    } finally {
      this.#leave(holder);
    }
  }

  #wait(holder: Holder): Promise<void> {
    const waiting = this.#waiting.get(holder) ?? new Set();
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
      }, this.#options.maxWaitMs);
      waiting.add(begin);
    });
  }

  #take(holder: Holder): void {
    this.#total += 1;
    this.#running.set(holder, this.#runningOf(holder) + 1);
  }

  #leave(holder: Holder): void {
    if (!this.#hasShare(holder)) this.#moveToEnd(holder); // its turn begins now that it may run one more
    this.#total -= 1;
    const running = this.#runningOf(holder) - 1;
    if (running > 0) this.#running.set(holder, running);
    else this.#running.delete(holder);
    this.#beginNext();
  }

  #beginNext(): void {
    // A holder that is moved to the end comes up again.
    for (const [holder, waiting] of this.#waiting) {
      if (this.#total >= this.#options.perProcess) return;
      const [begin] = waiting;
      if (begin === undefined || !this.#hasShare(holder)) continue;
      waiting.delete(begin);
      this.#moveToEnd(holder);
      this.#take(holder);
      begin();
    }
  }

  #moveToEnd(holder: Holder): void {
    const waiting = this.#waiting.get(holder);
    this.#waiting.delete(holder);
    if (waiting !== undefined && waiting.size > 0) this.#waiting.set(holder, waiting);
  }

  /** One place is always left, so that every end of a holder's work admits the next of it. */
  #hasShare(holder: Holder): boolean {
    const [running, most] = [this.#runningOf(holder), this.#most(holder)];
    if (running === 0) return true;
    return running < most && (running < most / 16 || !this.#options.isContended?.());
  }

  #runningOf(holder: Holder): number {
    return this.#running.get(holder) ?? 0;
  }

  #most(holder: Holder): number {
    return holder === undefined ? this.#options.perProcess : this.#options.perHolder;
  }

  #refused(holder: Holder): GatewayError {
    const { things, maxWaiting } = this.#options;
    const message = `At most ${this.#most(holder)} ${things} at once per caller, and ${maxWaiting} waiting`;
    return new GatewayError('RATE_LIMITED', message, { retryAfterSeconds: 1, httpStatus: 429, refused: { holder } });
  }
}
