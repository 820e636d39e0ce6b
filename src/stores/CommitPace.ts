import { realRuntime } from '../process/Runtime.js';

const pauseMs = 2;

/**
 * Says when writes are to begin: at once when the last ones began two milliseconds ago, else together when that is over. What
 * begins in one turn of the event loop is one commit, and that costs more than what it writes.
 */
export class CommitPace {
  #lastAt = Number.NEGATIVE_INFINITY;
  #next: Promise<void> | undefined;

  constructor(private readonly runtime = realRuntime) {}

  /** Resolves when the next writes are to begin. */
  next(): Promise<void> {
    const { runtime } = this;
    this.#next ??= new Promise<void>((resolve) => {
      const begin = () => {
        this.#lastAt = runtime.monotonicNow();
        this.#next = undefined;
        resolve();
      };
      const leftMs = this.#lastAt + pauseMs - runtime.monotonicNow();
      if (leftMs > 0) runtime.setTimeout(begin, leftMs);
      else runtime.setImmediate(begin); // with what else this turn writes
    });
    return this.#next;
  }
}
