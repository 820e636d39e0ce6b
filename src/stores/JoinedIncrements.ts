interface Increment {
  readonly by: number;
  readonly ttlMs: number;
  readonly resolve: (count: number) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Adds to each counter in turn: increments of one process then never make each other try again. Those that come while one
 * is under way share the next.
 */
export class JoinedIncrements {
  /** What waits for the increment that is under way, by the key of the counter. */
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
