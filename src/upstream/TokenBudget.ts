import type { SealedStore } from '../cache/SealedStore.js';
import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import type { Runtime } from '../process/Runtime.js';
import { StoreError } from '../stores/StoreError.js';

interface TokenBudgetOptions {
  readonly store: SealedStore;
  /** Calls per hour and fleet; 0 means no limit. */
  readonly perHour: number;
  /** What one caller may take of that which the others have left, from 0 to 1. */
  readonly callerShare: number;
  /** What all watchers may take of that which is left by others, from 0 to 1. */
  readonly watchShare: number;
  readonly runtime: Runtime;
  /** What is left, and the milliseconds until the hour ends. */
  readonly onLeft?: (left: number, resetsInMs: number) => void;
  readonly onExhausted?: (whose: 'fleet' | 'caller' | 'watch') => void;
}

/** Whom a call is made for. */
export interface Spender {
  readonly holder?: string | undefined;
  /** Nobody waits for the answer: the call is made to keep watchers up to date. */
  readonly isWatch?: boolean;
}

/** What one caller, or all watchers, may take of that which the others have left. */
interface Share {
  readonly of: 'caller' | 'watch';
  /** Of the caller; of all watchers one that no caller has. */
  readonly holder: string;
  /** From 0 to 1. */
  readonly size: number;
}

/** What this process knows of one clock hour. */
class Hour {
  /** The fleet's highest count so far; 0 while the store has not answered. */
  seen = 0;
  /** Calls of this process. */
  made = 0;
  /** Calls this process has counted in the store and not made: for when the store is away, and for those a share forbade. */
  reserve = 0;
  /** Those for the reserve that the store is being asked for. */
  reserving = 0;
  /** Calls the store has not been told of. */
  untold = 0;

  constructor(readonly number: number) {}
}

const hourMs = 3_600_000;
/** A counter outlives its hour, for machines whose clocks are behind. */
const counterTtlMs = 2 * hourMs;
/** The most that a process has in reserve, as a share of what is left. */
const reserveShare = 1 / 16;
/** What it reserves with its first call of the hour; then one with each call, so that large fleets do not reserve it all. */
const firstReserve = 40;
/** What a process may use of an hour in which it has not reached the store at all. */
const aloneShare = 1 / 4;
/** When to come back for a budget that is not spent but cannot be counted, in milliseconds. */
const storeAwayRetryMs = 30_000;
/** How far a count may be above its limit, because refused calls are counted too; more cannot be true. */
const maxRefused = 10_000;
const maxCallers = 10_000;
const watchers = 'watchers';

/**
 * The fleet's budget of calls to the token endpoint, counted in the shared store per clock hour, and each caller's share of
 * it, and that of all watchers. The hour is part of a counter's name, so neither a wrong clock nor a wrong lifetime can make it longer.
 *
 * **While the store is away**, processes cannot know of each other's calls. Each then uses only calls it has already
 * counted in the store, its reserve, so the fleet stays within the budget however often the store comes and goes. Only a
 * process that has not reached the store since the hour began counts alone: up to a quarter of the budget, told to the
 * store later. What one caller takes is then bounded by each process.
 */
export class TokenBudget {
  #hour = new Hour(Number.NaN);
  /** What each caller has taken in an hour, as last heard. */
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
    // Nothing is taken from one when the other is known to be spent.
    for (const share of shares) if (this.#isSpent(hour, share)) throw this.#exhausted(hour, share);
    const [spent, isCounted] = await Promise.all([this.#takeShares(hour, shares), this.#takeFromStore(hour)]);
    if (spent) {
      if (isCounted) hour.reserve += 1;
      throw this.#exhausted(hour, spent);
    }
    const granted = isCounted || this.#takeWithoutStore(hour);
    onLeft?.(Math.max(0, perHour - hour.seen) + hour.reserve, this.#restOf(hour));
    // A store that counts too few cannot have one process call more often than the fleet may.
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
    this.#takenBy.set(key, (this.#takenBy.get(key) ?? 0) + 1); // others may be asking at the same time
    const name = [`token-budget-of-${share.of}`, String(hour.number), share.holder];
    const counted = await this.#add(name, 1, this.options.perHour + maxRefused);
    if (counted === undefined) return true;
    this.#takenBy.set(key, Math.max(counted, this.#takenBy.get(key) ?? 0));
    return counted <= this.#mostOf(hour, share, counted - 1); // this call is not among those seen
  }

  /** What may be taken in all of a share of which `own` are taken: at least one call, however little is left. */
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
      if ((await this.#count(hour, untold)) === undefined) hour.untold += untold; // to hear of the others' calls
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
    return Math.min(hourMs, Math.max(0, (hour.number + 1) * hourMs - this.options.runtime.now()));
  }

  /** With `share`, refuses its holder alone: others who wait for the same read get their own turn. */
  #exhausted(hour: Hour, share?: Share): GatewayError {
    const refused = share && { holder: share.holder };
    this.options.onExhausted?.(share?.of ?? 'fleet');
    const isSpent = share || Math.max(hour.seen, hour.made) >= this.options.perHour;
    const waitMs = Math.min(this.#restOf(hour), isSpent ? hourMs : storeAwayRetryMs);
    const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
    const { message, reason } = exhausted[share?.of ?? 'fleet'];
    return new GatewayError('TOKEN_BUDGET_EXHAUSTED', message, { retryAfterSeconds, reason, refused });
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
