export interface Rate {
  readonly atOnce: number;
  readonly everyMs: number;
  /** The longest that a turn may be away, in milliseconds. */
  readonly longestMs: number;
}

/** So many turns at once, then one every few milliseconds: a leaky bucket. */
export class Pace {
  /** Turns taken and not given back by time yet, as of `#at` (of `performance.now()`). */
  #taken = 0;
  #at = 0;

  constructor(private readonly rate: Rate) {}

  /** Milliseconds until the last of so many turns, which are taken unless that is too long. */
  take(turns = 1): number {
    const { atOnce, everyMs, longestMs } = this.rate;
    const now = performance.now();
    const taken = Math.max(0, this.#taken - (now - this.#at) / everyMs) + turns;
    const waitMs = Math.max(0, (taken - atOnce) * everyMs);
    if (waitMs <= longestMs) {
      this.#taken = taken;
      this.#at = now;
    }
    return waitMs;
  }
}
