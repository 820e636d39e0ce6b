import { realRuntime } from '../process/Runtime.js';

/** Between two beginnings, in milliseconds. */
const pauseMs = 2;

/**
 * Writes that begin in one turn of the event loop share one commit, and a commit costs more than the writes in it. So writes
 * begin at the end of the turn, but not within {@link pauseMs} of the last ones.
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
