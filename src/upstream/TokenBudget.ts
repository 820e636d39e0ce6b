import type { SealedStore } from '../cache/SealedStore.js';
import type { Config } from '../config/config.js';
import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/memory.js';
import { hourMs } from '../stores/Store.js';
import { goOnAlone } from '../stores/StoreError.js';
import type { CallOptions } from './ResilientFetch.js';

/** `budgetWatchShare`: the share that all watchers together may use, from 0 to 1. Each share is at least one call. */
interface TokenBudgetOptions
  extends Pick<Config, 'TOKEN_BUDGET_PER_HOUR' | 'TOKEN_BUDGET_CALLER_SHARE' | 'budgetWatchShare'> {
  readonly store: SealedStore;
  /** The calls left, and the milliseconds until the hour ends. */
  readonly onBudget: (left: number, resetsInMs: number) => void;
  readonly onEvent: (event: BudgetEvent) => void;
}

export type BudgetEvent = 'budget-exhausted' | 'watch-share-exhausted' | 'caller-share-exhausted';

/** The most calls in an hour: of all watchers together, of one caller, or of the fleet. */
interface Limit {
  readonly of: keyof typeof refusals;
  readonly holder: string;
  readonly most: number;
  /** Names the counter in the store. It changes with the client secret, so a new secret begins a new hour. */
  readonly key: string;
}

/** The part of each limit that a process may use in an hour while the store does not answer. */
const aloneShare = 1 / 8;
/** When a caller should retry if the calls cannot be counted, in milliseconds. */
const storeAwayRetryMs = 30_000;
const maxCounts = 10_000;

/**
 * The fleet's budget of calls to the token endpoint, with a cap for each caller and one for all watchers, counted in the
 * shared store: an hour begins with its first call and ends by the clock of the store. While the store does not answer,
 * processes cannot know of each other's calls: each may then use an eighth of the budget, and of each cap, in an hour.
 */
export class TokenBudget {
  /** The limits that the count of the store has reached, each until its hour ends. */
  readonly #reached = new BoundedCache<true>({ max: maxCounts });
  /** The calls that this process counted while the store did not answer, for an hour from the first. */
  readonly #alone = new BoundedCache<number>({ max: maxCounts, ttl: hourMs, noUpdateTTL: true });

  constructor(private readonly options: TokenBudgetOptions) {}

  /**
   * Counts one call: first against the caps of its caller and of watchers, then against the budget of the fleet.
   * @throws GatewayError RATE_LIMITED at the cap of the caller; TOKEN_BUDGET_EXHAUSTED at that of the watchers or the fleet
   */
  async spend(call: CallOptions): Promise<void> {
    const { store, onBudget, TOKEN_BUDGET_PER_HOUR } = this.options;
    if (TOKEN_BUDGET_PER_HOUR === 0) return;
    const limits = this.#limitsOf(call);
    // Checked before counting: nothing is counted at one limit when another is known to be reached.
    for (const limit of limits) {
      const leftMs = this.#reached.getRemainingTTL(limit.key);
      if (leftMs > 0) throw this.#refusal(limit, leftMs);
    }
    for (const [index, limit] of limits.entries()) {
      const counted = await store.increment(limit.key, hourMs).catch(goOnAlone);
      if (counted === undefined) return this.#countAlone(limits.slice(index));
      const { count, leftMs } = counted;
      if (limit.of === 'fleet') onBudget(Math.max(0, limit.most - count), leftMs);
      if (count >= limit.most) this.#reached.set(limit.key, true, { ttl: Math.max(1, leftMs) }); // lru-cache takes 0 for no end
      if (count > limit.most) throw this.#refusal(limit, leftMs);
    }
  }

  #limitsOf({ holder, isWatch }: CallOptions): readonly Limit[] {
    const { store, TOKEN_BUDGET_PER_HOUR, TOKEN_BUDGET_CALLER_SHARE, budgetWatchShare } = this.options;
    const limits: Limit[] = [];
    const add = (of: Limit['of'], limited: string, share: number) => {
      const key = store.keyOf(['token-budget', of, limited]);
      limits.push({ of, holder: limited, most: Math.max(1, Math.floor(share * TOKEN_BUDGET_PER_HOUR)), key });
    };
    // The caller's first: what is refused there must not count for others.
    if (holder !== undefined && TOKEN_BUDGET_CALLER_SHARE < 1) add('caller', holder, TOKEN_BUDGET_CALLER_SHARE);
    if (isWatch && budgetWatchShare < 1) add('watch', 'watchers', budgetWatchShare);
    add('fleet', '', 1);
    return limits;
  }

  /** Counts one call against those of its limits that the store has not counted. */
  #countAlone(limits: readonly Limit[]): void {
    const callsOf = ({ key }: Limit) => this.#alone.get(key) ?? 0;
    const reached = limits.find((limit) => callsOf(limit) >= Math.max(1, limit.most * aloneShare));
    if (reached !== undefined) throw this.#refusal(reached, storeAwayRetryMs, storeAway);
    for (const limit of limits) this.#alone.set(limit.key, callsOf(limit) + 1);
  }

  /** At the cap of the watchers or of one caller, the error names whom it concerns: others who wait for the read try again. */
  #refusal({ of, holder, most }: Limit, waitMs: number, message?: string): GatewayError {
    const { code, forWhom, event } = refusals[of];
    this.options.onEvent(event);
    return new GatewayError(code, message ?? `At most ${most} token calls per hour for ${forWhom}`, {
      retryAfterSeconds: waitMs / 1000,
      httpStatus: of === 'caller' ? 429 : undefined,
      onlyFor: of === 'fleet' ? undefined : { holder },
    });
  }
}

/** For each kind of limit, the code of its refusals, how their message ends, and the event that is counted. */
const refusals = {
  fleet: {
    code: 'TOKEN_BUDGET_EXHAUSTED',
    forWhom: 'the fleet (TOKEN_BUDGET_PER_HOUR)',
    event: 'budget-exhausted',
  },
  watch: {
    code: 'TOKEN_BUDGET_EXHAUSTED',
    forWhom: 'all watchers together',
    event: 'watch-share-exhausted',
  },
  caller: {
    code: 'RATE_LIMITED',
    forWhom: 'one caller (TOKEN_BUDGET_CALLER_SHARE)',
    event: 'caller-share-exhausted',
  },
} as const;
const storeAway =
  'The store (CACHE_URL) does not answer, and the token calls this process may make without it are used up';
