export interface Rate {
  readonly atOnce: number;
  readonly everyMs: number;
  /** The longest that a turn may be away, in milliseconds. */
  readonly longestMs: number;
}

/** So many turns at once, then one every few milliseconds. */
export class Pace {
  /** When the latest turn was or will be, by `performance.now()`. */
  #latest = Number.NEGATIVE_INFINITY;

  constructor(private readonly rate: Rate) {}

  /** Takes the next turn: the milliseconds until it comes. Infinity, and no turn, when that is too long. */
  take(): number {
    const { atOnce, everyMs, longestMs } = this.rate;
    const now = performance.now();
    const turn = Math.max(this.#latest + everyMs, now - (atOnce - 1) * everyMs);
    if (turn - now > longestMs) return Number.POSITIVE_INFINITY;
    this.#latest = turn;
    return Math.max(0, turn - now);
  }
}
