import { LRUCache } from 'lru-cache';
import type { SealedStore } from '../cache/SealedStore.js';
import { GatewayError } from '../errors/errors.js';
import { StoreError } from '../stores/StoreError.js';

interface TokenBudgetOptions {
  readonly store: SealedStore;
  /** Calls per hour and fleet; 0 means no limit. */
  readonly perHour: number;
  /** What one caller may take of that which the others have left, from 0 to 1. */
  readonly callerShare: number;
  readonly now: () => number;
  /** What is left, and the milliseconds until the hour ends. */
  readonly onLeft?: (left: number, resetsInMs: number) => void;
  readonly onExhausted?: (whose: 'fleet' | 'caller') => void;
}

/** What this process knows of one clock hour. */
class Hour {
  /** The fleet's highest count so far; 0 while the store has not answered. */
  seen = 0;
  /** Calls of this process. */
  made = 0;
  /** Calls this process has counted in the store and not made, for when the store is away; undefined until it asked for them. */
  reserve: number | undefined;
  /** Calls the store has not been told of. */
  untold = 0;

  constructor(readonly number: number) {}
}

const hourMs = 3_600_000;
/** A counter outlives its hour, for machines whose clocks are behind. */
const counterTtlMs = 2 * hourMs;
/** What a process reserves at its first call of the hour, as a share of what is left then. */
const reserveShare = 1 / 16;
/** What a process may use of an hour in which it has not reached the store at all. */
const aloneShare = 1 / 4;
/** When to come back for a budget that is not spent but cannot be counted, in milliseconds. */
const storeAwayRetryMs = 30_000;
/** How far a count may be above its limit, because refused calls are counted too; more cannot be true. */
const maxRefused = 10_000;
const maxCallers = 10_000;

/**
 * The fleet's budget of calls to the token endpoint, counted in the shared store per clock hour, and each caller's share of
 * it. The hour is part of a counter's name, so neither a wrong clock nor a wrong lifetime can make it longer.
 *
 * **While the store is away**, processes cannot know of each other's calls. Each then uses only calls it has already
 * counted in the store, its reserve, so the fleet stays within the budget however often the store comes and goes. Only a
 * process that has not reached the store since the hour began counts alone: up to a quarter of the budget, told to the
 * store later. What one caller takes is then bounded by each process.
 */
export class TokenBudget {
  #hour = new Hour(Number.NaN);
  /** What each caller has taken in an hour, as last heard. */
  readonly #takenBy = new LRUCache<string, number>({ max: maxCallers });

  constructor(private readonly options: TokenBudgetOptions) {}

  /** Takes one call from the budget and from the share of `holder`. @throws GatewayError TOKEN_BUDGET_EXHAUSTED */
  async spend(holder?: string): Promise<void> {
    const { perHour, onLeft } = this.options;
    if (perHour === 0) return;
    const number = Math.floor(this.options.now() / hourMs);
    if (number !== this.#hour.number) this.#hour = new Hour(number);
    const hour = this.#hour;
    if (holder !== undefined && !(await this.#takeShare(hour, holder))) throw this.#exhausted(hour, holder);
    const granted = (await this.#takeFromStore(hour)) || this.#takeWithoutStore(hour);
    onLeft?.(Math.max(0, perHour - hour.seen) + (hour.reserve ?? 0), this.#restOf(hour));
    // A store that counts too few cannot have one process call more often than the fleet may.
    if (!granted || hour.made >= perHour) throw this.#exhausted(hour);
    hour.made += 1;
  }

  async #takeShare(hour: Hour, holder: string): Promise<boolean> {
    const name = [String(hour.number), holder];
    const key = name.join(' ');
    const takenBefore = this.#takenBy.get(key) ?? 0;
    if (takenBefore >= this.#shareOf(hour, takenBefore)) return false;
    this.#takenBy.set(key, takenBefore + 1); // others of this caller may be asking at the same time
    const counted = await this.#add(['token-budget-of-caller', ...name], 1, this.options.perHour + maxRefused);
    if (counted === undefined) return true;
    this.#takenBy.set(key, Math.max(counted, this.#takenBy.get(key) ?? 0));
    return counted <= this.#shareOf(hour, counted);
  }

  /** What a caller who has taken `own` may take in all: at least one call, however little is left. */
  #shareOf(hour: Hour, own: number): number {
    const { perHour, callerShare } = this.options;
    const byOthers = Math.max(0, hour.seen - (hour.reserve ?? 0) - own);
    return Math.max(1, Math.floor(callerShare * (perHour - byOthers)));
  }

  async #takeFromStore(hour: Hour): Promise<boolean> {
    const { perHour } = this.options;
    if (hour.seen >= perHour) return false; // what is spent stays spent until the hour is over
    const { untold } = hour;
    hour.untold = 0;
    const count = await this.#count(hour, untold + 1);
    if (count === undefined) hour.untold += untold;
    if (count === undefined || count > perHour) return false;
    if (hour.reserve === undefined) await this.#fillReserve(hour);
    return true;
  }

  #takeWithoutStore(hour: Hour): boolean {
    if (hour.reserve) {
      hour.reserve -= 1;
      return true;
    }
    if (hour.seen > 0 || hour.made >= Math.ceil(this.options.perHour * aloneShare)) return false;
    hour.untold += 1;
    return true;
  }

  /** Once per hour, in a call of its own: a lost answer to it costs the fleet this reserve and no more. */
  async #fillReserve(hour: Hour): Promise<void> {
    const { perHour } = this.options;
    hour.reserve = 0;
    const wanted = Math.floor((perHour - hour.seen) * reserveShare);
    const count = wanted > 0 ? await this.#count(hour, wanted) : undefined;
    if (count !== undefined) hour.reserve += Math.max(0, Math.min(wanted, perHour - (count - wanted)));
  }

  /** Adds `by` to the fleet's count and returns it; undefined as {@link TokenBudget.#add}. */
  async #count(hour: Hour, by: number): Promise<number | undefined> {
    const name = ['token-budget', String(hour.number)];
    // Once the budget is spent, only calls already under way add to the count.
    const most = 2 * this.options.perHour + maxRefused;
    const least = hour.seen + by;
    let count = await this.#add(name, by, most);
    // A store that was emptied or rolled back gets the calls it has lost.
    if (count !== undefined && count < least) count = await this.#add(name, least - count, most);
    if (count === undefined) return undefined;
    hour.seen = Math.max(hour.seen, least, count);
    return Math.max(least, count);
  }

  /** Adds to a counter and returns it; undefined when the store is away or says what cannot be true. */
  async #add(name: readonly string[], by: number, most: number): Promise<number | undefined> {
    try {
      return await this.options.store.increment(name, by, counterTtlMs, most);
    } catch (error) {
      if (error instanceof StoreError) return undefined;
      throw error;
    }
  }

  /** Milliseconds until the hour ends; at most one hour, even if the clock changes. */
  #restOf(hour: Hour): number {
    return Math.min(hourMs, Math.max(0, (hour.number + 1) * hourMs - this.options.now()));
  }

  /** With `holder`, refuses that caller alone: others who wait for the same read get their own turn. */
  #exhausted(hour: Hour, holder?: string): GatewayError {
    const refused = holder === undefined ? undefined : { holder };
    this.options.onExhausted?.(refused ? 'caller' : 'fleet');
    const message = refused
      ? 'Your share of the hourly budget of token calls is spent (TOKEN_BUDGET_CALLER_SHARE)'
      : "The fleet's hourly budget of token calls is spent";
    const isSpent = refused || Math.max(hour.seen, hour.made) >= this.options.perHour;
    const waitMs = Math.min(this.#restOf(hour), isSpent ? hourMs : storeAwayRetryMs);
    const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
    const reason = refused
      ? 'TOKEN_BUDGET_CALLER_SHARE is spent'
      : 'TOKEN_BUDGET_PER_HOUR is spent, or the store is away';
    return new GatewayError('TOKEN_BUDGET_EXHAUSTED', message, { retryAfterSeconds, reason, refused });
  }
}
