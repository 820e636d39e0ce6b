import type { SealedStore } from '../cache/SealedStore.js';
import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import { StoreError } from '../stores/StoreError.js';

interface TokenBudgetOptions {
  readonly store: SealedStore;
  /** Calls per hour and fleet; 0 means no limit. */
  readonly perHour: number;
  /** The share of them that one caller may use, from 0 to 1. Each share is at least one call. */
  readonly callerShare: number;
  /** The share of them that all watchers together may use, from 0 to 1. */
  readonly watchShare: number;
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

/** The most calls that one caller, or all watchers together, may make in an hour. */
interface Cap {
  readonly of: 'caller' | 'watch';
  /** The caller; for all watchers together a name that no caller has. */
  readonly holder: string;
  readonly most: number;
}

/** What this process knows of one clock hour. */
class Hour {
  /** The fleet's highest count so far; 0 while the store has not answered. */
  seen = 0;
  /** Calls that this process has made. */
  made = 0;
  /** Calls this process has counted in the store but not made: set aside for a store outage, or refused at a cap. */
  reserve = 0;
  /** Calls for the reserve that the store is being asked to count. */
  reserving = 0;
  /** Calls made that the store has not counted yet. */
  untold = 0;
  /** Calls counted at each cap, as last known. */
  readonly taken = new BoundedCache<number>({ max: maxCallers });

  constructor(readonly number: number) {}

  takenOf(cap: Cap): number {
    return this.taken.get(keyOf(cap)) ?? 0;
  }
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
 * The fleet's budget of calls to the token endpoint, with a cap for each caller and one for all watchers, counted in the
 * shared store per clock hour. A counter's name holds the hour, so neither a wrong clock nor a wrong lifetime can prolong it.
 *
 * **While the store does not answer**, processes cannot know of each other's calls. Each then uses only calls it has already
 * counted in the store, its reserve, so the fleet stays within the budget however often the store fails and recovers. Only a
 * process that has not reached the store since the hour began counts alone: up to a quarter of the budget, counted in the
 * store later. Each process then limits a caller by its own count.
 */
export class TokenBudget {
  #hour = new Hour(Number.NaN);

  constructor(private readonly options: TokenBudgetOptions) {}

  /**
   * Takes one call from the budget, and counts it at the caps of the spender.
   * @throws GatewayError RATE_LIMITED at the cap of the caller; TOKEN_BUDGET_EXHAUSTED at that of the watchers or the fleet
   */
  async spend(spender: Spender): Promise<void> {
    const { perHour, onLeft } = this.options;
    if (perHour === 0) return;
    const number = Math.floor(Date.now() / hourMs);
    if (number !== this.#hour.number) this.#hour = new Hour(number);
    const hour = this.#hour;
    const caps = this.#capsOf(spender);
    // Checked before counting: nothing is counted at one cap when another, or the fleet's, is known to be reached.
    for (const cap of caps) if (hour.takenOf(cap) >= cap.most) throw this.#refusal(hour, cap);
    if (hour.seen >= perHour && hour.reserve === 0) throw this.#refusal(hour);
    for (const cap of caps) hour.taken.set(keyOf(cap), hour.takenOf(cap) + 1); // now, so that concurrent calls see it
    const [reached, isCounted] = await Promise.all([this.#countAt(hour, caps), this.#takeFromStore(hour)]);
    if (reached && isCounted) hour.reserve += 1;
    const isGranted = !reached && (isCounted || this.#takeWithoutStore(hour));
    onLeft?.(Math.max(0, perHour - hour.seen) + hour.reserve, this.#restOf(hour));
    // Even if the store counts too few calls, one process does not make more than the fleet may.
    if (!isGranted || hour.made >= perHour) {
      for (const cap of caps) hour.taken.set(keyOf(cap), hour.takenOf(cap) - 1); // no call is made
      throw this.#refusal(hour, reached);
    }
    hour.made += 1;
  }

  /** Caps below that of the fleet. */
  #capsOf({ holder, isWatch }: Spender): readonly Cap[] {
    const { perHour, callerShare, watchShare } = this.options;
    const mostOf = (share: number) => Math.max(1, Math.floor(share * perHour));
    const caps: Cap[] = [];
    if (isWatch) caps.push({ of: 'watch', holder: watchers, most: mostOf(watchShare) });
    if (holder !== undefined) caps.push({ of: 'caller', holder, most: mostOf(callerShare) });
    return caps.filter(({ most }) => most < perHour);
  }

  /** Counts a call at each cap in the store. The first of them that is reached; nothing is counted at those after it. */
  async #countAt(hour: Hour, caps: readonly Cap[]): Promise<Cap | undefined> {
    for (const cap of caps) {
      const name = [`token-budget-of-${cap.of}`, String(hour.number), cap.holder];
      const counted = (await this.#add(name, 1, this.options.perHour + maxRefused)) ?? 0;
      hour.taken.set(keyOf(cap), Math.max(counted, hour.takenOf(cap)));
      if (counted > cap.most) return cap;
    }
    return undefined;
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
      return (await this.options.store.increment(name, by, counterTtlMs, most)).count;
    } catch (error) {
      if (error instanceof StoreError) return undefined;
      throw error;
    }
  }

  /** Milliseconds until the hour ends; at most one hour, even if the clock changes. */
  #restOf(hour: Hour): number {
    return Math.min(hourMs, Math.max(0, (hour.number + 1) * hourMs - Date.now()));
  }

  /** With `cap`, the error refuses its holder alone: others who wait for the same read then try for themselves. */
  #refusal(hour: Hour, cap?: Cap): GatewayError {
    const { perHour, onExhausted } = this.options;
    onExhausted?.(cap?.of ?? 'fleet');
    const isStoreAway = cap === undefined && Math.max(hour.seen, hour.made) < perHour;
    const waitMs = Math.min(this.#restOf(hour), isStoreAway ? storeAwayRetryMs : hourMs);
    const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
    const [code, whose] = refusals[cap?.of ?? 'fleet'];
    const message = isStoreAway ? storeAway : `At most ${cap?.most ?? perHour} token calls per hour for ${whose}`;
    return new GatewayError(code, message, { retryAfterSeconds, onlyFor: cap && { holder: cap.holder } });
  }
}

/** The code, and how its message ends. */
const refusals = {
  fleet: ['TOKEN_BUDGET_EXHAUSTED', 'the fleet (TOKEN_BUDGET_PER_HOUR)'],
  watch: ['TOKEN_BUDGET_EXHAUSTED', 'all watchers together'],
  caller: ['RATE_LIMITED', 'one caller (TOKEN_BUDGET_CALLER_SHARE)'],
} as const;
const storeAway =
  'The store (CACHE_URL) does not answer, and the token calls this process may make without it are used up';

const keyOf = ({ of, holder }: Cap) => `${of} ${holder}`;
