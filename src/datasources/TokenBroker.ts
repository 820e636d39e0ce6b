import { z } from 'zod';
import type { FairQueue } from '../admission/FairQueue.js';
import { LeasedCache, type LeasedCacheOptions, type ReadRequest } from '../cache/LeasedCache.js';
import type { SealedStore } from '../cache/SealedStore.js';
import type { Codec, Entry } from '../cache/StoredEntries.js';
import { Secret } from '../config/secret.js';
import { type ErrorCode, GatewayError, upstreamTimeout } from '../errors/errors.js';
import type { CallOptions } from '../upstream/ResilientFetch.js';
import { TokenBudget } from '../upstream/TokenBudget.js';
import type { TaxpayerId } from './identifiers.js';
import type { TaxpayerService } from './TaxpayerService.js';
import { absenceMs, longestAbsenceMs, UnknownTaxpayers } from './UnknownTaxpayers.js';
import { accessToken, jsonObject, type TokenRecord } from './wire.js';

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
  /** The same in the words of the schema, kept by whoever translated it. */
  translated?: unknown;
}

/** A token to be used. Two credentials of one taxpayer are the same exactly when their versions are. */
export interface Credential {
  readonly accessToken: Secret;
  readonly version: string;
}

export interface TokenBrokerOptions {
  readonly service: TaxpayerService;
  readonly store: SealedStore;
  /** Where reads wait for their turn; none wait when left out. */
  readonly places?: FairQueue | undefined;
  /** Age up to which a record is shown without asking again, in milliseconds. */
  readonly freshMs: number;
  /** Calls to the token endpoint per hour and fleet; 0 means no limit. */
  readonly budgetPerHour: number;
  /** What one caller may take of the budget that the others have left, from 0 to 1. */
  readonly budgetCallerShare: number;
  readonly cache: Pick<LeasedCacheOptions<TokenAnswer>, 'maxEntries' | 'workMs' | 'onRead' | 'onLeaseWait'>;
  readonly now?: () => number;
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

/** Callers may ask for fresher records than `freshMs`, but not below this age, in milliseconds. */
export const freshnessFloorMs = 60_000;
/** Freshness of a record whose status can no longer change, in milliseconds. */
export const terminalFreshMs = 24 * 3_600_000;
/** How far ahead another machine's clock may be: more than for jobs, because every call that it costs counts here. */
const skewMs = 10_000;
/** After a brand-new token was refused: how long no other is fetched for that taxpayer, in milliseconds. */
export const refetchCoolDownMs = 60_000;
/** How long a record is kept in the shared store: its token may be good for as long, in milliseconds. */
export const recordTtlMs = 30 * 24 * 3_600_000;

const terminalStatuses: ReadonlySet<string> = new Set(['REJECTED', 'COMPLETED']);

/** Failures that mean "no answer now": a record that is held is shown instead. The others are answers. */
const cannotAnswer: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'TOKEN_BUDGET_EXHAUSTED',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_CREDENTIALS_REJECTED',
  'UPSTREAM_REJECTED',
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_INVALID_RESPONSE',
]);

/**
 * Brokers taxpayer tokens so that the token endpoint is called once per taxpayer and token lifetime (interface, 4.2:
 * "for sparing use"). One cache serves two questions: to *use* a token its age does not matter, it is good until the
 * service answers 401; to *show* a record it does.
 */
export class TokenBroker {
  readonly #options: TokenBrokerOptions;
  readonly #cache: LeasedCache<TokenAnswer>;
  readonly #budget: TokenBudget;
  readonly #unknown: UnknownTaxpayers;
  /** Entries held whose token the service refused here: what they show is no longer so. */
  readonly #refused = new WeakSet<Entry<TokenAnswer>>();

  constructor(options: TokenBrokerOptions) {
    this.#options = options;
    this.#cache = new LeasedCache({
      ...options.cache,
      kind: 'token',
      store: options.store,
      codec: tokenAnswerCodec,
      ttlMs: (answer) => (answer.kind === 'record' ? recordTtlMs : answer.forMs),
      skewMs,
      now: options.now ?? Date.now,
    });
    this.#unknown = new UnknownTaxpayers(options.now ?? Date.now);
    this.#budget = new TokenBudget({
      store: options.store,
      perHour: options.budgetPerHour,
      callerShare: options.budgetCallerShare,
      ...(options.now && { now: options.now }),
      ...(options.onBudget && { onLeft: options.onBudget }),
      onExhausted: (whose) => options.onEvent?.(whose === 'fleet' ? 'budget-exhausted' : 'caller-share-exhausted'),
    });
  }

  /** The record to show when memory holds one that {@link record} would answer with; asks nobody. */
  held(id: TaxpayerId, maxAgeMs = Infinity): TokenView | undefined {
    const entry = this.#cache.held(id, (held) => this.#isFresh(held, maxAgeMs));
    return entry && this.#viewOf(entry);
  }

  /**
   * The record to show, at most `maxAgeMs` old (never asked for below {@link freshnessFloorMs}). When the service cannot
   * answer, an older record is shown as stale.
   *
   * @throws GatewayError NOT_FOUND, TOKEN_BUDGET_EXHAUSTED or an `UPSTREAM_` code when there is nothing to show
   */
  async record(id: TaxpayerId, maxAgeMs = Infinity, call: CallOptions = {}): Promise<TokenView> {
    const acceptable = (held: Entry<TokenAnswer>) => this.#isFresh(held, maxAgeMs);
    try {
      const read = () => this.#read(id, { acceptable, takesFetchedMeanwhile: true }, call);
      const entry = await (this.#options.places?.run(call.holder, read) ?? read());
      return this.#viewOf(entry);
    } catch (error) {
      const { value, fetchedAt } = this.#staleInsteadOf(error, id);
      return { record: recordOf(value), fetchedAt, stale: true };
    }
  }

  /**
   * A token to use, however old. After the service refused one, pass its `version` as `refused`: anything else will do,
   * and only when there is nothing else is a new one fetched. A refusal therefore deletes nothing, so a late one can
   * never evict a newer token, and the old record can still be shown if the token endpoint is down.
   *
   * @throws GatewayError NOT_FOUND, TOKEN_BUDGET_EXHAUSTED or an `UPSTREAM_` code
   */
  credential(id: TaxpayerId, refused?: string, call: CallOptions = {}): Credential | Promise<Credential> {
    const acceptable = (entry: Entry<TokenAnswer>) =>
      entry.version !== refused &&
      (entry.value.kind === 'record' || this.#cache.isYoungerThan(entry, entry.value.forMs));
    const read = this.#read(id, { acceptable }, call);
    return read instanceof Promise ? read.then(credentialOf) : credentialOf(read);
  }

  /**
   * A credential in place of one that the service refused. Fetches at most once for the fleet; throws while the taxpayer
   * is in the cool-down that {@link giveUp} began. `signal` ends the wait.
   *
   * @throws GatewayError TAXPAYER_NOT_AUTHORIZED during the cool-down; UPSTREAM_TIMEOUT when `signal` aborts; otherwise as
   *   {@link credential}
   */
  replace(id: TaxpayerId, refused: Credential, signal: AbortSignal, call: CallOptions = {}): Promise<Credential> {
    return endingWith(signal, this.#replace(id, refused, signal, call));
  }

  async #replace(id: TaxpayerId, refused: Credential, signal: AbortSignal, call: CallOptions): Promise<Credential> {
    this.#noteRefused(id, refused);
    if ((await this.#options.store.mark(refusalName(id))) === refused.version) {
      this.#options.onEvent?.('refetch-cool-down');
      throw notAuthorized();
    }
    signal.throwIfAborted();
    this.#options.onEvent?.('credential-replaced');
    return this.credential(id, refused.version, call);
  }

  /** The service refused the replacement as well: notes it for the fleet and returns the error for the caller. */
  async giveUp(id: TaxpayerId, refused: Credential): Promise<GatewayError> {
    this.#noteRefused(id, refused);
    await this.#options.store.set(refusalName(id), refused.version, refetchCoolDownMs);
    return notAuthorized();
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
      return { kind: 'no-such-taxpayer', forMs: this.#unknown.meet() };
    }
  }

  #isFresh(entry: Entry<TokenAnswer>, maxAgeMs: number): boolean {
    const { value } = entry;
    if (value.kind === 'no-such-taxpayer') return this.#cache.isYoungerThan(entry, value.forMs);
    const freshMs = terminalStatuses.has(value.record.status) ? terminalFreshMs : this.#options.freshMs;
    return this.#cache.isYoungerThan(entry, Math.min(freshMs, Math.max(maxAgeMs, freshnessFloorMs)));
  }

  #noteRefused(id: TaxpayerId, { version }: Credential): void {
    const held = this.#cache.peek(id);
    if (held?.version !== version) return;
    this.#refused.add(held);
    held.view = undefined;
  }

  /** Of one entry always the same view, so that what is made of it can be kept with it. */
  #viewOf(entry: Entry<TokenAnswer>): TokenView {
    const { value, fetchedAt } = entry;
    entry.view ??= { record: recordOf(value), fetchedAt, stale: this.#refused.has(entry) } satisfies TokenView;
    return entry.view as TokenView;
  }

  #staleInsteadOf(error: unknown, id: TaxpayerId): Entry<TokenAnswer> {
    const held = this.#cache.peek(id);
    if (held?.value.kind !== 'record' || !(error instanceof GatewayError) || !cannotAnswer.has(error.code)) throw error;
    this.#options.onEvent?.('stale-served');
    return held;
  }
}

function credentialOf({ value, version }: Entry<TokenAnswer>): Credential {
  return { accessToken: recordOf(value).accessToken, version };
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
  z.object({
    kind: z.literal('record'),
    record: z.object({
      accessToken: accessToken.transform((text) => new Secret(text)),
      taxpayerId: z.string(),
      name: z.string().nullable(),
      metadata: jsonObject.nullable(),
      providerId: z.string(),
      createdAt: z.string().nullable(),
      status: z.string(),
      lostNumber: z.string().exactOptional(),
    } satisfies Record<keyof TokenRecord, z.ZodType>),
  }),
  z.object({ kind: z.literal('no-such-taxpayer'), forMs: z.number().max(longestAbsenceMs).default(absenceMs) }),
]);

const tokenAnswerCodec: Codec<TokenAnswer> = {
  encode: (answer) =>
    answer.kind === 'record'
      ? { ...answer, record: { ...answer.record, accessToken: answer.record.accessToken.reveal() } }
      : answer,
  decode: (stored) => storedAnswer.parse(stored),
};
