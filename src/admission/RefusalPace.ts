import { BoundedCache } from '../process/BoundedCache.js';

/** How many refusals of one caller, or address, a process answers in a second once {@link burst} is used up. */
const perSecond = 500;
const burst = 100;
const everyMs = 1000 / perSecond;
/** The longest that a refusal may wait, in milliseconds. */
const longestMs = 1000;
const maxCallers = 10_000;

/**
 * Paces the answers to refused requests: a caller that sends them in a flood waits, and leaves the event loop to others.
 */
export class RefusalPace {
  /** When each caller's latest turn was or will be, in milliseconds of `now`. */
  readonly #latest = new BoundedCache<number>({ max: maxCallers });

  /** `now`: milliseconds of a monotonic clock. */
  constructor(private readonly now = () => performance.now()) {}

  /** Milliseconds until the next refusal of `key` may be answered; Infinity when too many wait. */
  take(key: string): number {
    const now = this.now();
    const turn = Math.max((this.#latest.get(key) ?? Number.NEGATIVE_INFINITY) + everyMs, now - burst * everyMs);
    if (turn - now > longestMs) return Number.POSITIVE_INFINITY;
    this.#latest.set(key, turn);
    return Math.max(0, turn - now);
  }
}
