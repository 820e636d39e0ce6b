import { realRuntime } from '../process/Runtime.js';

/** Least time between the starts of two commits, in milliseconds. */
const pauseMs = 2;

/**
 * Writes that begin in one turn of the event loop share one commit, and a commit costs more than the writes in it. So writes
 * wait for the end of the turn, and until {@link pauseMs} after the previous ones began.
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
      else runtime.setImmediate(begin); // together with the other writes of this turn
    });
    return this.#next;
  }
}
