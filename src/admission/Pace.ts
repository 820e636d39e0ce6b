export interface Rate {
  readonly atOnce: number;
  readonly everyMs: number;
  /** Longest wait for a turn, in milliseconds. */
  readonly longestMs: number;
}

/** A leaky bucket: allows `atOnce` turns at once, then one every `everyMs` milliseconds. */
export class Pace {
  /** How full the bucket is, in turns, as of `#at` (of `performance.now()`). */
  #taken = 0;
  #at = 0;

  constructor(private readonly rate: Rate) {}

  /** Takes turns. Returns the milliseconds until the last of them comes; takes none when that is more than `longestMs`. */
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
