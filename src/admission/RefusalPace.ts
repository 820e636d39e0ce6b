import { setTimeout as delay } from 'node:timers/promises';

/** How many refusals a process answers in a second once {@link burst} is used up. */
const perSecond = 1000;
const burst = 100;
/** Refusals that wait at most; more are answered at once, because each that waits takes memory. */
const maxWaiting = 1000;

/**
 * Spreads the answers to requests that are refused. Who sends them in a flood and waits for each answer then sends fewer, and
 * leaves the event loop to others.
 */
export class RefusalPace {
  /** When the latest turn was or will be, in milliseconds of `now`. */
  #latest = Number.NEGATIVE_INFINITY;

  /** `now`: milliseconds of a monotonic clock. */
  constructor(private readonly now = () => performance.now()) {}

  /** What to wait for before the next refusal is answered, if anything: at most a second. */
  turn(): Promise<void> | undefined {
    const waitMs = this.#take();
    return waitMs > 0 ? delay(waitMs, undefined, { ref: false }) : undefined;
  }

  /** Milliseconds until the turn. */
  #take(): number {
    const now = this.now();
    const everyMs = 1000 / perSecond;
    const turn = Math.max(this.#latest + everyMs, now - burst * everyMs);
    if (turn - now > maxWaiting * everyMs) return 0;
    this.#latest = turn;
    return turn - now;
  }
}
