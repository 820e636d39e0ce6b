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

  /** Milliseconds until the last of so many turns, which are taken unless that is too long. */
  take(turns = 1): number {
    const { atOnce, everyMs, longestMs } = this.rate;
    const now = performance.now();
    const last = Math.max(this.#latest, now - atOnce * everyMs) + turns * everyMs;
    if (last - now <= longestMs) this.#latest = last;
    return Math.max(0, last - now);
  }
}
