/** Messages besides operations that are free for each socket: so many at once, and then one more so often. */
const freeAtOnce = 20;
const freeEveryMs = 500;
/** Characters of a message that take the turn of another one. */
const charactersPerTurn = 16_384;

/**
 * Spreads what a socket sends besides operations: pings, pongs, and the ends of operations that it does not have. Clients
 * that ping every few seconds stay within what is free; what is beyond it is paced like the refusals of its caller.
 */
export class MessagePace {
  /** When the latest free message was due, in milliseconds of `now`. */
  #latestFree = Number.NEGATIVE_INFINITY;

  /** `waitOfRefusal`: as {@link Admission.waitOfRefusal}, of the caller. `now`: milliseconds of a monotonic clock. */
  constructor(
    private readonly waitOfRefusal: () => number,
    private readonly now = () => performance.now(),
  ) {}

  /** Milliseconds to read nothing after a message that is no operation; Infinity when too many wait. */
  afterMessage(characters: number): number {
    const now = this.now();
    const due = Math.max(this.#latestFree + freeEveryMs, now - (freeAtOnce - 1) * freeEveryMs);
    if (due > now || characters > charactersPerTurn) return this.afterRefusal(characters);
    this.#latestFree = due;
    return 0;
  }

  /** Milliseconds to read nothing after an operation that was refused; Infinity when too many wait. */
  afterRefusal(characters: number): number {
    let waitMs = this.waitOfRefusal();
    for (let rest = characters - charactersPerTurn; rest > 0; rest -= charactersPerTurn) waitMs = this.waitOfRefusal();
    return waitMs;
  }
}
