import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { FairQueue } from '../admission/FairQueue.js';
import { LeasedCache, type LeasedCacheOptions, type ReadRequest } from '../cache/LeasedCache.js';
import type { SealedStore } from '../cache/SealedStore.js';
import type { Codec, Entry } from '../cache/StoredEntries.js';
import { GatewayError, upstreamTimeout } from '../errors/errors.js';
import type { CallOptions } from '../upstream/ResilientFetch.js';
import { TokenBudget } from '../upstream/TokenBudget.js';
import type { TaxpayerId } from './identifiers.js';
import { AccessTokenRefused, type Credential, type TaxpayerService } from './TaxpayerService.js';
import { storedTokenRecord, type TokenRecord } from './wire.js';

/** What the service said about a taxpayer's token. A 404 is remembered as well, but only briefly. */
export type TokenAnswer =
  | { readonly kind: 'record'; readonly record: TokenRecord }
  | { readonly kind: 'no-such-taxpayer'; readonly forMs: number };

/** A record as it is shown: with its age, and whether it is past its freshness. */
export interface TokenView {
  readonly record: TokenRecord;
  /** Epoch milliseconds. */
  readonly fetchedAt: number;
  /** Shown past its freshness because the service could not answer, or although the service refused its token. */
  readonly stale: boolean;
}

/** What every cached read of the service needs. */
export interface ReadingOptions {
  readonly service: TaxpayerService;
  readonly store: SealedStore;
  /** Where reads wait for their turn; none wait when left out. */
  readonly places?: FairQueue | undefined;
  readonly cache: Pick<LeasedCacheOptions<unknown>, 'maxEntries' | 'workMs' | 'onRead' | 'onLeaseWait'>;
  readonly now?: () => number;
}

export interface TokenBrokerOptions extends ReadingOptions {
  /** Age up to which a record is shown without asking again, in milliseconds. */
  readonly freshMs: number;
  /** Calls to the token endpoint per hour and fleet; 0 means no limit. */
  readonly budgetPerHour: number;
  /** What one caller may take of the budget that the others have left, from 0 to 1. */
  readonly budgetCallerShare: number;
  readonly onEvent?: (event: TokenEvent) => void;
  /** After each call, with what is left of this hour's budget and when the hour ends, in milliseconds from now. */
  readonly onBudget?: (remaining: number, resetsInMs: number) => void;
}

export type TokenEvent =
  | 'stale-served'
  | 'absent-remembered'
  | 'budget-exhausted'
  | 'caller-share-exhausted'
  | 'credential-replaced'
  | 'refetch-cool-down';

const freshnessFloorMs = 60_000; // callers may ask for fresher records than `freshMs`, but not below this age
const terminalFreshMs = 24 * 3_600_000; // freshness of a record whose status can no longer change
const skewMs = 10_000; // of another machine's clock: more than for jobs, because every call that it costs counts here
const refetchCoolDownMs = 60_000; // after a brand-new token was refused, until another is fetched for that taxpayer
const absenceMs = 15_000; // how long an id that the service does not know is remembered
const longestAbsenceMs = 900_000; // the same when there are very many of them
const usualAbsencesPerHour = 10;
const recordTtlMs = 30 * 24 * 3_600_000; // in the shared store: a token may be good for as long

const terminalStatuses: ReadonlySet<string> = new Set(['REJECTED', 'COMPLETED']);

/**
 * Brokers taxpayer tokens so that the token endpoint is called once per taxpayer and token lifetime (interface, 4.2:
 * "for sparing use"). One cache serves two questions: to *use* a token its age does not matter, it is good until the
 * service answers 401; to *show* a record it does.
 */
export class TokenBroker {
  readonly #options: TokenBrokerOptions;
  readonly #now: () => number;
  readonly #cache: LeasedCache<TokenAnswer>;
  readonly #budget: TokenBudget;
  /** The versions of tokens that the service has taken. */
  readonly #proven: LRUCache<string, true>;
  /** Unknown ids that were met in a clock hour. */
  #unknown = { hour: Number.NaN, met: 0 };

  constructor(options: TokenBrokerOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#proven = new LRUCache({ max: options.cache.maxEntries });
    this.#cache = new LeasedCache({
      ...options.cache,
      kind: 'token',
      store: options.store,
      codec: tokenAnswerCodec,
      ttlMs: (answer) => (answer.kind === 'record' ? recordTtlMs : answer.forMs),
      skewMs,
      now: this.#now,
    });
    this.#budget = new TokenBudget({
      store: options.store,
      perHour: options.budgetPerHour,
      callerShare: options.budgetCallerShare,
      now: this.#now,
      ...(options.onBudget && { onLeft: options.onBudget }),
      onExhausted: (whose) => options.onEvent?.(whose === 'fleet' ? 'budget-exhausted' : 'caller-share-exhausted'),
    });
  }

  /** The record to show when memory holds one that {@link record} would answer with; asks nobody. */
  held(id: TaxpayerId, maxAgeMs = Infinity): TokenView | undefined {
    const entry = this.#cache.held(id, (held) => this.#isFresh(held, maxAgeMs));
    return entry && viewOf(entry);
  }

  /**
   * The record to show, at most `maxAgeMs` old (never asked for below {@link freshnessFloorMs}). When the service cannot
   * answer, an older record is shown as stale.
   *
   * @throws GatewayError NOT_FOUND, TOKEN_BUDGET_EXHAUSTED or an `UPSTREAM_` code when there is nothing to show
   */
  async record(id: TaxpayerId, maxAgeMs = Infinity, call: CallOptions = {}): Promise<TokenView> {
    const acceptable = (held: Entry<TokenAnswer>) => this.#isFresh(held, maxAgeMs);
    const read = async () => this.#read(id, { acceptable, takesFetchedMeanwhile: true }, call);
    try {
      return viewOf(await (this.#options.places?.run(call.holder, read) ?? read()));
    } catch (error) {
      const held = this.#cache.peek(id);
      if (held?.value.kind !== 'record' || !isNoAnswer(error)) throw error;
      this.#options.onEvent?.('stale-served');
      return { ...viewOf(held), stale: true };
    }
  }

  /**
   * A token to use, however old, but not of the version `refused`. A refusal deletes nothing: a late one can never evict a
   * newer token, and the old record can still be shown if the token endpoint is down.
   *
   * @throws GatewayError NOT_FOUND, TOKEN_BUDGET_EXHAUSTED or an `UPSTREAM_` code
   */
  credential(id: TaxpayerId, refused?: string, call: CallOptions = {}): Credential | Promise<Credential> {
    const acceptable = (entry: Entry<TokenAnswer>) =>
      entry.version !== refused &&
      (entry.value.kind === 'record' || this.#cache.isYoungerThan(entry, entry.value.forMs));
    const read = this.#read(id, { acceptable }, call);
    return read instanceof Promise ? read.then((entry) => this.#credentialOf(entry)) : this.#credentialOf(read);
  }

  /**
   * Does a `read` that needs the taxpayer's token. A token that the service refuses is replaced once, by at most one fetch
   * for the fleet; when it refuses that one too, none is fetched for this taxpayer for a minute (interface, part 5).
   *
   * @throws GatewayError TAXPAYER_NOT_AUTHORIZED when the service takes no token; UPSTREAM_TIMEOUT when `signal` aborts
   *   while another token is waited for; as {@link credential}; or as `read`
   */
  async readWithToken<T>(
    id: TaxpayerId,
    first: Credential,
    { signal, ...call }: CallOptions & { readonly signal: AbortSignal },
    read: (credential: Credential) => Promise<T>,
  ): Promise<T> {
    let credential = first;
    for (;;) {
      const { version } = credential;
      try {
        const answer = await read(credential);
        this.#proven.set(version, true);
        return answer;
      } catch (error) {
        if (!(error instanceof AccessTokenRefused)) throw error;
      }
      this.#noteRefused(id, version);
      if (credential !== first) {
        await this.#options.store.set(refusalName(id), version, refetchCoolDownMs);
        throw notAuthorized();
      }
      credential = await endingWith(signal, this.#replace(id, version, signal, call));
    }
  }

  async #replace(id: TaxpayerId, refused: string, signal: AbortSignal, call: CallOptions): Promise<Credential> {
    if ((await this.#options.store.mark(refusalName(id))) === refused) {
      this.#options.onEvent?.('refetch-cool-down');
      throw notAuthorized();
    }
    signal.throwIfAborted();
    this.#options.onEvent?.('credential-replaced');
    return this.credential(id, refused, call);
  }

  #credentialOf({ value, version }: Entry<TokenAnswer>): Credential {
    return { accessToken: recordOf(value).accessToken, version, isProven: this.#proven.has(version) };
  }

  #noteRefused(id: TaxpayerId, version: string): void {
    const held = this.#cache.peek(id);
    if (held?.version === version) held.view = { ...viewOf(held), stale: true };
  }

  #read(id: TaxpayerId, demand: Omit<ReadRequest<TokenAnswer>, 'fetch' | 'holder'>, call: CallOptions) {
    const { holder } = call;
    return this.#cache.read(id, { ...demand, fetch: (_, signal) => this.#fetch(id, signal, call), holder });
  }

  async #fetch(id: TaxpayerId, signal: AbortSignal, call: CallOptions): Promise<TokenAnswer> {
    try {
      // Each try is spent for, because the service counts those.
      const record = await this.#options.service.tokenRecord(id, signal, () => this.#budget.spend(call.holder), call);
      return { kind: 'record', record };
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'NOT_FOUND') throw error;
      this.#options.onEvent?.('absent-remembered');
      return { kind: 'no-such-taxpayer', forMs: this.#absenceMs() };
    }
  }

  /** How long an unknown id is remembered: the longer, the more of them were met, because each costs a call. */
  #absenceMs(): number {
    const hour = Math.floor(this.#now() / 3_600_000);
    this.#unknown = { hour, met: hour === this.#unknown.hour ? this.#unknown.met + 1 : 1 };
    return Math.min(longestAbsenceMs, absenceMs * Math.max(1, this.#unknown.met / usualAbsencesPerHour));
  }

  #isFresh(entry: Entry<TokenAnswer>, maxAgeMs: number): boolean {
    const { value } = entry;
    if (value.kind === 'no-such-taxpayer') return this.#cache.isYoungerThan(entry, value.forMs);
    const freshMs = terminalStatuses.has(value.record.status) ? terminalFreshMs : this.#options.freshMs;
    return this.#cache.isYoungerThan(entry, Math.min(freshMs, Math.max(maxAgeMs, freshnessFloorMs)));
  }
}

/** Of one entry always the same view, so that it is translated once. */
function viewOf(entry: Entry<TokenAnswer>): TokenView {
  entry.view ??= { record: recordOf(entry.value), fetchedAt: entry.fetchedAt, stale: false } satisfies TokenView;
  return entry.view as TokenView;
}

/** Whether the service gave no answer now, so that a record that is held is shown instead. Other failures are answers. */
function isNoAnswer(error: unknown): boolean {
  return error instanceof GatewayError && /^(UPSTREAM_|TOKEN_BUDGET_EXHAUSTED$)/.test(error.code);
}

function recordOf(answer: TokenAnswer): TokenRecord {
  if (answer.kind === 'record') return answer.record;
  throw new GatewayError('NOT_FOUND', 'The service knows no such taxpayer');
}

function notAuthorized(): GatewayError {
  return new GatewayError('TAXPAYER_NOT_AUTHORIZED', "The service refuses this taxpayer's token, a new one included");
}

/** Waits until `signal` aborts at most. The work itself goes on: others may be waiting for it. */
function endingWith<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => reject(upstreamTimeout());
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end));
  });
}

function refusalName(id: TaxpayerId): readonly string[] {
  return ['token', 'refused', id];
}

const storedAnswer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('record'), record: storedTokenRecord }),
  z.object({ kind: z.literal('no-such-taxpayer'), forMs: z.number().max(longestAbsenceMs).default(absenceMs) }),
]);

const tokenAnswerCodec: Codec<TokenAnswer> = {
  encode: (answer) =>
    answer.kind === 'record'
      ? { ...answer, record: { ...answer.record, accessToken: answer.record.accessToken.reveal() } }
      : answer,
  decode: (stored) => storedAnswer.parse(stored),
};
