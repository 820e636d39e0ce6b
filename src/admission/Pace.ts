interface Rate {
  readonly atOnce: number;
  readonly everyMs: number;
  /** Longest wait, in milliseconds. */
  readonly longestMs: number;
}

/** A leaky bucket of any units: lets `atOnce` of them pass at once, then one every `everyMs` milliseconds. */
export class Pace {
  /** How full the bucket is, in units, as of `#at` (of `performance.now()`). */
  #taken = 0;
  #at = 0;

  constructor(private readonly rate: Rate) {}

  /** Takes units. Returns the milliseconds until the last of them may pass; takes none when that is more than `longestMs`. */
  take(units: number): number {
    const { atOnce, everyMs, longestMs } = this.rate;
    const now = performance.now();
    const taken = Math.max(0, this.#taken - (now - this.#at) / everyMs) + units;
    const waitMs = Math.max(0, (taken - atOnce) * everyMs);
    if (waitMs <= longestMs) {
      this.#taken = taken;
      this.#at = now;
    }
    return waitMs;
  }
}
