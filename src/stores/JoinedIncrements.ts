interface Increment {
  readonly by: number;
  readonly ttlMs: number;
  readonly resolve: (count: number) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs one increment per counter at a time, so that increments of one process never conflict and retry. Those that arrive
 * while one is in flight are added up in the next.
 */
export class JoinedIncrements {
  /** The increments that wait for the one in flight, by the key of the counter. */
  readonly #waiting = new Map<string, Increment[]>();

  /** @param add increments a counter, atomically, and returns its count */
  constructor(private readonly add: (key: string, by: number, ttlMs: number) => Promise<number>) {}

  /** The count after this increment. */
  increment(key: string, by: number, ttlMs: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const increment = { by, ttlMs, resolve, reject };
      const waiting = this.#waiting.get(key);
      if (waiting) waiting.push(increment);
      else void this.#addInTurn(key, increment);
    });
  }

  async #addInTurn(key: string, first: Increment): Promise<void> {
    for (let together = [first]; together.length > 0; together = this.#waiting.get(key) ?? []) {
      this.#waiting.set(key, []);
      const sum = together.reduce((total, { by }) => total + by, 0);
      try {
        let count = (await this.add(key, sum, together[0]?.ttlMs ?? 0)) - sum;
        for (const { by, resolve } of together) {
          count += by;
          resolve(count);
        }
      } catch (error) {
        for (const { reject } of together) reject(error);
      }
    }
    this.#waiting.delete(key);
  }
}
