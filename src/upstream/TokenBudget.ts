import type { SealedStore } from '../cache/SealedStore.js';
import { StoreError } from '../cache/stores/StoreError.js';
import { GatewayError } from '../errors/errors.js';
import { CallerShares } from './CallerShares.js';

export interface TokenBudgetOptions {
  readonly store: SealedStore;
  /** Calls per hour and fleet; 0 means no limit. */
  readonly perHour: number;
  /** What one caller may take of that which the others have left, from 0 to 1. */
  readonly callerShare: number;
  readonly now?: () => number;
  /** After each look at the count, with what is left and when the hour ends, in milliseconds from now. */
  readonly onLeft?: (left: number, resetsInMs: number) => void;
  readonly onExhausted?: (whose: 'fleet' | 'caller') => void;
}

/** What this process knows of one clock hour. */
interface Hour {
  readonly number: number;
  /** The fleet's highest count so far; 0 while the store has not answered. */
  seen: number;
  /** Calls of this process. */
  made: number;
  /** Calls this process has counted in the store and not made, for when the store is away; undefined until it asked for them. */
  reserve: number | undefined;
  /** Calls the store has not heard of. */
  untold: number;
}

const hourMs = 3_600_000;
/** The counter outlives its hour, for machines whose clocks are behind. */
const counterTtlMs = 2 * hourMs;
/** What a process reserves at its first call of the hour, as a share of what is left then. */
const reserveShare = 1 / 16;
/** What a process may use of an hour in which it has not reached the store at all. */
const aloneShare = 1 / 4;
/** When to come back for a budget that is not spent but cannot be counted, in milliseconds. */
const storeAwayRetryMs = 30_000;

/**
 * The fleet's budget of calls to the token endpoint, counted in the shared store per clock hour. The hour is part of the
 * counter's name, so neither a wrong clock nor a wrong lifetime can make it longer.
 *
 * **While the store is away**, processes cannot know of each other's calls. Each then uses only calls it has already
 * counted in the store, its reserve, so the fleet stays within the budget however often the store comes and goes. Only a
 * process that has not reached the store since the hour began counts alone: up to a quarter of the budget, told to the
 * store later.
 */
export class TokenBudget {
  readonly #options: TokenBudgetOptions;
  readonly #now: () => number;
  readonly #shares: CallerShares;
  #hour: Hour = newHour(Number.NaN);

  constructor(options: TokenBudgetOptions) {
    this.#options = options;
    this.#shares = new CallerShares({
      store: options.store,
      total: options.perHour,
      share: options.callerShare,
      name: ['token-budget-of-caller'],
      counterTtlMs,
    });
    this.#now = options.now ?? Date.now;
  }

  /**
   * Takes one call from the budget, and from the share of `holder`, who is undefined for callers without an identity.
   *
   * @throws GatewayError TOKEN_BUDGET_EXHAUSTED
   */
  async spend(holder?: string): Promise<void> {
    const { perHour, onLeft } = this.#options;
    if (perHour === 0) return;
    const hour = this.#presentHour();
    const hasShare = holder === undefined || (await this.#shares.take(holder, hour.number, takenOf(hour)));
    if (!hasShare) throw this.#shareExhausted(hour, holder);
    const granted = (await this.#takeFromStore(hour)) || this.#takeFromReserve(hour) || this.#takeAlone(hour);
    onLeft?.(Math.max(0, perHour - hour.seen) + (hour.reserve ?? 0), this.#restOf(hour));
    // A store that counts too few cannot have one process call more often than the fleet may.
    if (!granted || hour.made >= perHour) throw this.#exhausted(hour);
    hour.made += 1;
  }

  async #takeFromStore(hour: Hour): Promise<boolean> {
    const { perHour } = this.#options;
    if (hour.seen >= perHour) return false; // what is spent stays spent until the hour is over
    const { untold } = hour;
    hour.untold = 0;
    const count = await this.#count(hour, untold + 1);
    if (count === undefined) hour.untold += untold;
    if (count === undefined || count > perHour) return false;
    if (hour.reserve === undefined) await this.#fillReserve(hour);
    return true;
  }

  #takeFromReserve(hour: Hour): boolean {
    if (!hour.reserve) return false;
    hour.reserve -= 1;
    return true;
  }

  #takeAlone(hour: Hour): boolean {
    if (hour.seen > 0 || hour.made >= Math.ceil(this.#options.perHour * aloneShare)) return false;
    hour.untold += 1;
    return true;
  }

  /** Once per hour, in a call of its own: a lost answer to it costs the fleet this reserve and no more. */
  async #fillReserve(hour: Hour): Promise<void> {
    const { perHour } = this.#options;
    hour.reserve = 0;
    const wanted = Math.floor((perHour - hour.seen) * reserveShare);
    const count = wanted > 0 ? await this.#count(hour, wanted) : undefined;
    if (count !== undefined) hour.reserve += Math.max(0, Math.min(wanted, perHour - (count - wanted)));
  }

  /** Adds `by` to the fleet's count and returns it; undefined when the store is away or says what cannot be true. */
  async #count(hour: Hour, by: number): Promise<number | undefined> {
    const { store, perHour } = this.#options;
    const name = ['token-budget', String(hour.number)];
    // Once the budget is spent nobody adds to the count any more, except what is under way at that moment.
    const most = 2 * perHour + 10_000;
    const least = hour.seen + by;
    try {
      let { count } = await store.increment(name, by, counterTtlMs, most);
      // A store that was emptied, or rolled back, is told what it has lost.
      if (count < least) ({ count } = await store.increment(name, least - count, counterTtlMs, most));
      hour.seen = Math.max(hour.seen, least, count);
      return Math.max(least, count);
    } catch (error) {
      if (error instanceof StoreError) return undefined;
      throw error;
    }
  }

  #presentHour(): Hour {
    const number = Math.floor(this.#now() / hourMs);
    if (number !== this.#hour.number) this.#hour = newHour(number);
    return this.#hour;
  }

  /** Milliseconds until the hour ends; at most one hour, whatever the clock does meanwhile. */
  #restOf(hour: Hour): number {
    return Math.min(hourMs, Math.max(0, (hour.number + 1) * hourMs - this.#now()));
  }

  /** It stands in nobody else's way: others who wait for the same read get their own turn. */
  #shareExhausted(hour: Hour, holder: string): GatewayError {
    this.#options.onExhausted?.('caller');
    const message = 'Your share of the hourly budget of token calls is spent (TOKEN_BUDGET_CALLER_SHARE)';
    const retryAfterSeconds = Math.max(1, Math.ceil(this.#restOf(hour) / 1000));
    return new GatewayError('TOKEN_BUDGET_EXHAUSTED', message, { retryAfterSeconds, refused: { holder } });
  }

  #exhausted(hour: Hour): GatewayError {
    this.#options.onExhausted?.('fleet');
    const isSpent = Math.max(hour.seen, hour.made) >= this.#options.perHour;
    const waitMs = Math.min(this.#restOf(hour), isSpent ? hourMs : storeAwayRetryMs);
    return new GatewayError('TOKEN_BUDGET_EXHAUSTED', "The fleet's hourly budget of token calls is spent", {
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
    });
  }
}

function newHour(number: number): Hour {
  return { number, seen: 0, made: 0, reserve: undefined, untold: 0 };
}

/** What all callers have taken of the hour, as far as this process knows; its reserve is counted and not taken. */
function takenOf({ seen, reserve = 0 }: Hour): number {
  return Math.max(0, seen - reserve);
}
