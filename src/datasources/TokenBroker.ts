import { isYoungerThan, type ReadRequest } from '../cache/Entry.js';
import type { MemoryKeeper } from '../cache/Forgets.js';
import { LeasedCache } from '../cache/LeasedCache.js';
import type { Secret } from '../config/Secret.js';
import { GatewayError, upstreamTimeout } from '../errors/errors.js';
import { BoundedCache, mostRemembered } from '../process/memory.js';
import { inTime } from '../process/pause.js';
import { type BudgetEvent, TokenBudget } from '../upstream/TokenBudget.js';
import { digestOf, freshMsOf, isFinalRecord, unchangedMsOf } from './freshness.js';
import type { TaxpayerId } from './identifiers.js';
import { AccessTokenRefused, type ReadCall, type ReadingOptions } from './TaxpayerService.js';
import {
  absenceMs,
  hasRecord,
  notAuthorized,
  refusalName,
  type TokenAnswer,
  type TokenEntry,
  type TokenView,
  tokenAnswerCodec,
  viewOf,
} from './tokenAnswer.js';
import { Watcher } from './Watcher.js';

export type TokenEvent =
  | 'stale-served'
  | 'absent-remembered'
  | BudgetEvent
  | 'credential-replaced'
  | 'refetch-cool-down';

const freshnessFloorMs = 60_000; // lowest maximum age that callers can ask for; a lower one counts as this
const refetchCoolDownMs = 60_000; // after a new token was refused, no other is fetched for the taxpayer
const mostRefused = 3; // in one read: the token in memory, the one in the store, and a new one

/**
 * The first failure to read a record has no effect; the next begins a pause of this length, and each further one doubles it, up to
 * BREAKER_RESET_MS.
 */
const firstPauseMs = 1000;

/** Bytes that a remembered failure takes in memory. Measured: 716. */
const failureBytes = 720;

/** The last of the failures in a row to read a record. */
interface Failure {
  readonly error: GatewayError;
  readonly pauseMs: number;
  /** End of the pause, in milliseconds of the monotonic clock. */
  readonly until: number;
}

type TokenRequest = Pick<ReadRequest<TokenAnswer>, 'acceptable' | 'hasPlace'>;

/**
 * Brokers taxpayer tokens so that the token endpoint is called once per taxpayer and token lifetime (interface, 4.2:
 * "for sparing use"). One cache serves two purposes. To *use* a token, its age does not matter: it is valid until the
 * service answers 401. To *show* a record, its age matters.
 */
export class TokenBroker implements MemoryKeeper {
  readonly cache: LeasedCache<TokenAnswer>;
  /** Watches token records: each is read again when it stops being fresh, within the watchers' share of the budget. */
  readonly watches: Watcher<TokenView>;
  readonly #budget: TokenBudget;
  /** The failures of records that cannot be read. Kept by each process, so that an outage puts no load on the store. */
  readonly #failures = new BoundedCache<Failure>({ max: mostRemembered(failureBytes) });

  constructor(private readonly options: ReadingOptions) {
    const { onTokenEvent: onEvent, onBudget } = options.metrics;
    this.cache = new LeasedCache({
      ...options,
      kind: 'token',
      codec: tokenAnswerCodec,
      ttlMs: (answer) => (answer ? options.keepMs : absenceMs),
      idsOf: (id) => [id],
      onKept: (id, entry) => {
        if (hasRecord(entry) && this.#isFresh(entry)) this.watches.offer(id, entry);
      },
    });
    this.watches = new Watcher<TokenView>(
      {
        kind: 'token',
        read: (id, _, call) =>
          this.#read(id as TaxpayerId, { acceptable: (entry) => this.#isFresh(entry) }, { ...call, isWatch: true }),
        idsOf: (id) => [id],
        known: (id, isFailing) => this.known(id, isFailing),
        newsOf: ({ value, stale }) => (stale ? 'stale' : digestOf(value.record)),
        isFinal: ({ value }) => isFinalRecord(value.record),
        intervalMs: (view) => this.freshMs(view),
        retryMs: { first: 1000, longest: 900_000 },
      },
      options,
    );
    this.#budget = new TokenBudget({ ...options, onEvent, onBudget });
  }

  /**
   * The record to show, at most `maxAgeMs` old (but {@link freshnessFloorMs} if that is more); synchronously when memory has
   * it. When the service cannot answer, an older record is shown as stale.
   *
   * @throws GatewayError NOT_FOUND, TOKEN_BUDGET_EXHAUSTED, RATE_LIMITED or an `UPSTREAM_` code when there is nothing to show
   */
  record(id: TaxpayerId, call: ReadCall = {}, maxAgeMs = Infinity): TokenView | Promise<TokenView> {
    const acceptable = (entry: TokenEntry) => this.#isFresh(entry, maxAgeMs);
    const held = this.cache.held(id, acceptable);
    if (held !== undefined) return viewOf(held);
    const read = () => this.#read(id, { acceptable }, call).catch((error) => this.#staleFor(error, id));
    return call.once ? call.once(`token ${maxAgeMs} ${id}`, read) : read();
  }

  /** Forgets failures. The cache forgets its entries itself. */
  forget(isMeant: (id: string) => boolean): void {
    for (const id of [...this.#failures.keys()]) if (isMeant(id)) this.#failures.delete(id);
  }

  /** The record in memory, of any age. `stale`: as it is shown when the service cannot answer. */
  known(id: string, stale = false): TokenView | undefined {
    const held = this.cache.inMemory(id);
    if (!held || !hasRecord(held)) return undefined;
    return stale ? { ...held, stale } : held;
  }

  /** How long a record is fresh after it was read, in milliseconds. */
  freshMs({ value }: TokenView): number {
    return freshMsOf(this.options.freshness, value);
  }

  /** The stale record for a read that failed with `error`; throws the error if there is none, or it is an answer of the service. */
  #staleFor(error: unknown, id: TaxpayerId): TokenView {
    // An old record must not hide an answer of the service.
    const isNoAnswer =
      error instanceof GatewayError && /^(UPSTREAM_|TOKEN_BUDGET_EXHAUSTED$|RATE_LIMITED$)/.test(error.code);
    const stale = isNoAnswer ? this.known(id, true) : undefined;
    if (stale === undefined) throw error;
    this.options.metrics.onTokenEvent('stale-served');
    return stale;
  }

  /**
   * Runs a `read` that needs the taxpayer's token. A refused token is replaced by at most one fetch in the whole fleet. When
   * the service refuses the new token too, none is fetched for this taxpayer for a minute (interface, part 5).
   *
   * @throws GatewayError TAXPAYER_NOT_AUTHORIZED when the service accepts no token; UPSTREAM_TIMEOUT when
   *   `endsAt` passes during the wait for a token; as {@link record}, when there is no token; or as `read`
   */
  async readWithToken<T>(
    id: TaxpayerId,
    { endsAt, ...call }: ReadCall & { readonly endsAt: number },
    read: (token: Secret) => Promise<T>,
  ): Promise<T> {
    const { store, metrics } = this.options;
    let beganAt: number | undefined;
    /**
     * The versions that the service has refused. A refusal deletes nothing, so a late refusal cannot evict a newer token, and
     * the old record can still be shown while the token endpoint is down.
     */
    const refused = new Set<string>();
    const acceptable = (entry: TokenEntry) =>
      !refused.has(entry.version) && (hasRecord(entry) || isYoungerThan(entry, absenceMs));
    for (;;) {
      const leftMs = endsAt - performance.now();
      // The caller of this method has a place. A read of a token that takes longer goes on: others may be waiting for it.
      const view = await inTime(leftMs, this.#read(id, { acceptable, hasPlace: true }, call), upstreamTimeout);
      beganAt ??= performance.now();
      const { value, version, startedAt } = view;
      try {
        return await read(value.record.accessToken);
      } catch (error) {
        if (!(error instanceof AccessTokenRefused)) throw error;
      }
      refused.add(version);
      // If the service also refuses a token that was requested during this call, it accepts none. A token that was requested
      // earlier may have been replaced since. (Of a token that another process requested, only the time of the answer is
      // known.)
      if ((refused.size > 1 && startedAt >= beganAt) || refused.size === mostRefused) {
        await store.beginCoolDown(refusalName(id), version, refetchCoolDownMs);
        throw notAuthorized();
      }
      const coolDown = await store.coolDown(refusalName(id));
      const isCoolingDown = coolDown !== undefined && refused.has(coolDown.value);
      metrics.onTokenEvent(isCoolingDown ? 'refetch-cool-down' : 'credential-replaced');
      if (isCoolingDown) throw notAuthorized();
    }
  }

  async #read(id: TaxpayerId, which: TokenRequest, call: ReadCall): Promise<TokenView> {
    const fetch = (endsAt: number) => this.#fetch(id, endsAt, call);
    return viewOf(await this.cache.read(id, { ...which, holder: call.holder, fetch }));
  }

  /** @throws GatewayError during the pause of a record that keeps failing, the last error with the time that is left */
  async #fetch(id: TaxpayerId, endsAt: number, call: ReadCall): Promise<TokenAnswer> {
    const { service, BREAKER_RESET_MS, metrics } = this.options;
    const { holder, trail } = call;
    const last = this.#failures.get(id);
    const leftMs = (last?.until ?? 0) - performance.now();
    if (last && leftMs > 0) {
      const { code, message, reason } = last.error;
      throw new GatewayError(code, message, { reason, retryAfterSeconds: leftMs / 1000 });
    }
    let wasCalled = false;
    const beforeTry = async () => {
      await this.#budget.spend(call); // for each try, because the service counts tries
      if (trail) trail.tokenCalls += 1;
      wasCalled = true;
    };
    try {
      const record = await service.tokenRecord(id, { holder, trail, endsAt, beforeTry });
      this.#failures.delete(id);
      return { record, unchangedForMs: unchangedMsOf(record, this.cache.inMemory(id)) };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      if (error.code === 'NOT_FOUND') {
        this.#failures.delete(id);
        metrics.onTokenEvent('absent-remembered');
        return null;
      }
      // Not after a 429: then the whole endpoint pauses, and that pause is the longer one.
      if (wasCalled && /^UPSTREAM_(?!RATE_LIMITED)/.test(error.code)) {
        const pauseMs = last ? Math.min(BREAKER_RESET_MS, Math.max(firstPauseMs, 2 * last.pauseMs)) : 0;
        this.#failures.set(id, { error, pauseMs, until: performance.now() + pauseMs });
      }
      throw error;
    }
  }

  #isFresh(entry: TokenEntry, maxAgeMs = Infinity): boolean {
    const freshMs = hasRecord(entry) ? this.freshMs(entry) : absenceMs;
    return isYoungerThan(entry, Math.min(freshMs, Math.max(maxAgeMs, freshnessFloorMs)));
  }
}
