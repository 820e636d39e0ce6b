const pauseMs = 2;

/**
 * Says when writes are to begin: at once when the last ones began two milliseconds ago, else together when that is over. What
 * begins in one turn of the event loop is one commit, and that costs more than what it writes.
 */
export class CommitPace {
  #lastAt = Number.NEGATIVE_INFINITY;
  #next: Promise<void> | undefined;

  /** Resolves when the next writes are to begin. */
  next(): Promise<void> {
    this.#next ??= new Promise<void>((resolve) => {
      const begin = () => {
        this.#lastAt = performance.now();
        this.#next = undefined;
        resolve();
      };
      const leftMs = this.#lastAt + pauseMs - performance.now();
      if (leftMs > 0) setTimeout(begin, leftMs);
      else setImmediate(begin); // with what else this turn writes
    });
    return this.#next;
  }
}
