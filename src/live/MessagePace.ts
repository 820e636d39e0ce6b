/** Messages other than operations that a socket may send unpaced: so many at once, then one per `freeEveryMs`. */
const freeAtOnce = 20;
const freeEveryMs = 500;
/** Characters of a message per turn: a longer message takes several turns. */
const charactersPerTurn = 16_384;

/**
 * Counts the messages other than operations that a socket sends: pings, pongs, and `complete` for unknown operations. Clients
 * that ping every few seconds stay within the free messages; the others count as refusals of the same caller.
 */
export class MessagePace {
  /** When the latest free message was due, in milliseconds of `now`. */
  #latestFree = Number.NEGATIVE_INFINITY;

  /** `waitOfRefusal`: {@link Admission.waitOfRefusal} for the caller. `now`: milliseconds of a monotonic clock. */
  constructor(
    private readonly waitOfRefusal: () => number,
    private readonly onFlood: () => void,
    private readonly now = () => performance.now(),
  ) {}

  message(characters: number): void {
    const now = this.now();
    const due = Math.max(this.#latestFree + freeEveryMs, now - (freeAtOnce - 1) * freeEveryMs);
    if (due > now || characters > charactersPerTurn) this.refusal(characters);
    else this.#latestFree = due;
  }

  refusal(characters: number): void {
    let waitMs = this.waitOfRefusal();
    for (let rest = characters - charactersPerTurn; rest > 0; rest -= charactersPerTurn) waitMs = this.waitOfRefusal();
    if (waitMs === Number.POSITIVE_INFINITY) this.onFlood();
  }
}
