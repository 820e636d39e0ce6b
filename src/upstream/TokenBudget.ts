import type { SealedStore } from '../cache/SealedStore.js';
import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import type { Runtime } from '../process/Runtime.js';
import { StoreError } from '../stores/StoreError.js';

interface TokenBudgetOptions {
  readonly store: SealedStore;
  /** Calls per hour and fleet; 0 means no limit. */
  readonly perHour: number;
  /** The share one caller may take of the calls that the others have left, from 0 to 1. */
  readonly callerShare: number;
  /** The share all watchers together may take of the calls that the others have left, from 0 to 1. */
  readonly watchShare: number;
  readonly runtime: Runtime;
  /** The calls left, and the milliseconds until the hour ends. */
  readonly onLeft?: (left: number, resetsInMs: number) => void;
  readonly onExhausted?: (whose: 'fleet' | 'caller' | 'watch') => void;
}

/** Whom a call is made for. */
export interface Spender {
  readonly holder?: string | undefined;
  /** Nobody waits for the answer: the call is made to keep watchers up to date. */
  readonly isWatch?: boolean;
}

/** What one caller, or all watchers together, may take of the calls that the others have left. */
interface Share {
  readonly of: 'caller' | 'watch';
  /** The caller; for all watchers together a name that no caller has. */
  readonly holder: string;
  /** From 0 to 1. */
  readonly size: number;
}

/** What this process knows of one clock hour. */
class Hour {
  /** The fleet's highest count so far; 0 while the store has not answered. */
  seen = 0;
  /** Calls that this process has made. */
  made = 0;
  /** Calls this process has counted in the store but not made: set aside for a store outage, or refused by a share. */
  reserve = 0;
  /** Calls for the reserve that the store is being asked to count. */
  reserving = 0;
  /** Calls made that the store has not counted yet. */
  untold = 0;

  constructor(readonly number: number) {}
}

const hourMs = 3_600_000;
/** A counter outlives its hour, for machines whose clocks are behind. */
const counterTtlMs = 2 * hourMs;
/** The largest reserve of a process, as a share of the calls left. */
const reserveShare = 1 / 16;
/** Calls reserved with a process's first call of the hour; later one per call, so that large fleets do not reserve it all. */
const firstReserve = 40;
/** The share of the budget for a process that has not reached the store at all in the hour. */
const aloneShare = 1 / 4;
/** When a caller should retry if the budget is not spent but cannot be counted, in milliseconds. */
const storeAwayRetryMs = 30_000;
/** How far a count may be above its limit, because refused calls are counted too. A higher count is impossible. */
const maxRefused = 10_000;
const maxCallers = 10_000;
const watchers = 'watchers';

/**
 * The fleet's budget of calls to the token endpoint, with a share for each caller and one for all watchers, counted in the
 * shared store per clock hour. A counter's name holds the hour, so neither a wrong clock nor a wrong lifetime can prolong it.
 *
 * **While the store does not answer**, processes cannot know of each other's calls. Each then uses only calls it has already
 * counted in the store, its reserve, so the fleet stays within the budget however often the store fails and recovers. Only a
 * process that has not reached the store since the hour began counts alone: up to a quarter of the budget, counted in the
 * store later. Each process then limits a caller by its own count.
 */
export class TokenBudget {
  #hour = new Hour(Number.NaN);
  /** How many calls each caller has taken in an hour, as last known. */
  readonly #takenBy = new BoundedCache<number>({ max: maxCallers });

  constructor(private readonly options: TokenBudgetOptions) {}

  /** Takes one call from the budget and from the shares of the spender. @throws GatewayError TOKEN_BUDGET_EXHAUSTED */
  async spend({ holder, isWatch = false }: Spender): Promise<void> {
    const { perHour, callerShare, watchShare, onLeft } = this.options;
    if (perHour === 0) return;
    const number = Math.floor(this.options.runtime.now() / hourMs);
    if (number !== this.#hour.number) this.#hour = new Hour(number);
    const hour = this.#hour;
    const shares: Share[] = [];
    if (isWatch) shares.push({ of: 'watch', holder: watchers, size: watchShare });
    if (holder !== undefined) shares.push({ of: 'caller', holder, size: callerShare });
    // Checked before taking: nothing is taken from one share when another is known to be spent.
    for (const share of shares) if (this.#isSpent(hour, share)) throw this.#exhausted(hour, share);
    const [spent, isCounted] = await Promise.all([this.#takeShares(hour, shares), this.#takeFromStore(hour)]);
    if (spent) {
      if (isCounted) hour.reserve += 1;
      throw this.#exhausted(hour, spent);
    }
    const granted = isCounted || this.#takeWithoutStore(hour);
    onLeft?.(Math.max(0, perHour - hour.seen) + hour.reserve, this.#restOf(hour));
    // Even if the store counts too few calls, one process does not make more than the fleet may.
    if (!granted || hour.made >= perHour) throw this.#exhausted(hour);
    hour.made += 1;
  }

  #isSpent(hour: Hour, share: Share): boolean {
    const taken = this.#takenBy.get(keyOf(hour, share)) ?? 0;
    return taken >= this.#mostOf(hour, share, taken);
  }

  /** The first of the shares that is spent; nothing is taken from those after it. */
  async #takeShares(hour: Hour, shares: readonly Share[]): Promise<Share | undefined> {
    for (const share of shares) if (!(await this.#takeShare(hour, share))) return share;
    return undefined;
  }

  async #takeShare(hour: Hour, share: Share): Promise<boolean> {
    if (this.#isSpent(hour, share)) return false;
    const key = keyOf(hour, share);
    this.#takenBy.set(key, (this.#takenBy.get(key) ?? 0) + 1); // set before the store answers, so that concurrent calls see it
    const name = [`token-budget-of-${share.of}`, String(hour.number), share.holder];
    const counted = await this.#add(name, 1, this.options.perHour + maxRefused);
    if (counted === undefined) return true;
    this.#takenBy.set(key, Math.max(counted, this.#takenBy.get(key) ?? 0));
    return counted <= this.#mostOf(hour, share, counted - 1); // `hour.seen` does not include this call
  }

  /** The most calls a share allows in the hour when `own` of them are taken: at least one, however few are left. */
  #mostOf(hour: Hour, { size }: Share, own: number): number {
    const { perHour } = this.options;
    const byOthers = Math.max(0, hour.seen - hour.reserve - own);
    return Math.max(1, Math.floor(size * (perHour - byOthers)));
  }

  async #takeFromStore(hour: Hour): Promise<boolean> {
    const { perHour } = this.options;
    if (hour.seen >= perHour) return false; // what is spent stays spent until the hour is over
    const { untold } = hour;
    hour.untold = 0;
    const mostInReserve = Math.floor((perHour - hour.seen) * reserveShare);
    if (hour.reserve > mostInReserve) {
      hour.reserve -= 1;
      if ((await this.#count(hour, untold)) === undefined) hour.untold += untold; // asks to learn of the others' calls
      return true;
    }
    const isFirst = hour.made === 0 && hour.reserving === 0;
    const room = Math.max(0, mostInReserve - hour.reserve - hour.reserving);
    const reserved = Math.min(room, isFirst ? firstReserve : 1);
    hour.reserving += reserved;
    const count = await this.#count(hour, untold + 1 + reserved);
    hour.reserving -= reserved;
    if (count === undefined) hour.untold += untold;
    if (count === undefined || count - reserved > perHour) return false;
    hour.reserve += Math.max(0, Math.min(reserved, perHour - (count - reserved)));
    return true;
  }

  #takeWithoutStore(hour: Hour): boolean {
    if (hour.reserve > 0) {
      hour.reserve -= 1;
      return true;
    }
    if (hour.seen > 0 || hour.made >= Math.ceil(this.options.perHour * aloneShare)) return false;
    hour.untold += 1;
    return true;
  }

  /** Adds `by` to the fleet's count and returns it; undefined as {@link TokenBudget.#add}. */
  async #count(hour: Hour, by: number): Promise<number | undefined> {
    const name = ['token-budget', String(hour.number)];
    // Once the budget is spent, only calls already in flight add to the count.
    const most = 2 * this.options.perHour + maxRefused;
    const least = hour.seen + by;
    let count = await this.#add(name, by, most);
    // Adds again the calls that a store lost when it was emptied or rolled back.
    if (count !== undefined && count < least) count = await this.#add(name, least - count, most);
    if (count === undefined) return undefined;
    hour.seen = Math.max(hour.seen, least, count);
    return Math.max(least, count);
  }

  /** Adds to a counter and returns its count; undefined when the store does not answer or gives an impossible count. */
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
    return Math.min(hourMs, Math.max(0, (hour.number + 1) * hourMs - this.options.runtime.now()));
  }

  /** With `share`, the error refuses its holder alone: others who wait for the same read then try for themselves. */
  #exhausted(hour: Hour, share?: Share): GatewayError {
    const onlyFor = share && { holder: share.holder };
    this.options.onExhausted?.(share?.of ?? 'fleet');
    const isSpent = share || Math.max(hour.seen, hour.made) >= this.options.perHour;
    const waitMs = Math.min(this.#restOf(hour), isSpent ? hourMs : storeAwayRetryMs);
    const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
    const { message, reason } = exhausted[share?.of ?? 'fleet'];
    return new GatewayError('TOKEN_BUDGET_EXHAUSTED', message, { retryAfterSeconds, reason, onlyFor });
  }
}

/** What callers are told, and the reason for the log. */
const exhausted = {
  fleet: {
    message: "The fleet's hourly budget of token calls is spent",
    reason: 'TOKEN_BUDGET_PER_HOUR is spent, or the store is away',
  },
  caller: {
    message: 'Your share of the hourly budget of token calls is spent (TOKEN_BUDGET_CALLER_SHARE)',
    reason: 'TOKEN_BUDGET_CALLER_SHARE is spent',
  },
  watch: {
    message: 'The share of watchers in the hourly budget of token calls is spent (TOKEN_BUDGET_WATCH_SHARE)',
    reason: 'TOKEN_BUDGET_WATCH_SHARE is spent',
  },
} as const;

const keyOf = ({ number }: Hour, { of, holder }: Share) => `${number} ${of} ${holder}`;
