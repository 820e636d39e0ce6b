import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import nodeFetch from 'node-fetch';
import { GatewayError, outcomeUnknown, upstreamTimeout } from '../errors/errors.js';
import { BreakerOpen, type BreakerState, type CallRecord, EndpointBreaker } from './EndpointBreaker.js';
import { type OneConnection, RecentConnections } from './RecentConnections.js';
import { readAnswer, type ServiceAnswer, TryFailure } from './readAnswer.js';

/** The endpoints of the service (interface, part 4); also the label of metrics, gates and breakers. */
export const endpoints = ['createClientLink', 'taxpayerToken', 'refreshJob'] as const;
export type Endpoint = (typeof endpoints)[number];

export interface CallOptions {
  /** Who the call is made for: `holderOf` the caller. Whoever is first in a shared read is its holder. */
  readonly holder?: string | undefined;
}

export interface ServiceRequest extends CallOptions {
  readonly endpoint: Endpoint;
  /** What the call is about, as a taxpayer or a job; a POST is about nothing but itself. */
  readonly subject?: string | undefined;
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Aborting it ends the call with all its tries. */
  readonly signal?: AbortSignal | undefined;
  /** Runs before each try, a repetition included; what it throws ends the call without that try. */
  readonly beforeTry?: (() => Promise<void>) | undefined;
}

export type TryOutcome = 'ok' | 'client-error' | 'server-error' | 'timeout' | 'network' | 'invalid';

export interface ResilientFetchOptions {
  readonly timeoutMs: number;
  readonly deadlineMs: number;
  readonly breakerResetMs: number;
  readonly maxResponseBytes: number;
  readonly fetch?: typeof nodeFetch;
  readonly random?: () => number;
  /** The clock of the breakers, in milliseconds: one that nobody sets. Default `performance.now`. */
  readonly monotonicNow?: () => number;
  /** After each try, with its duration in seconds. */
  readonly onTry?: (endpoint: Endpoint, outcome: TryOutcome, seconds: number) => void;
}

const maxRepetitions = 2;
const maxSpareLimits = 50;

/**
 * Calls the service so that it answers, or fails, within a known time: a limit for each try and one for the whole call,
 * bounded bodies, no redirects, a circuit breaker per endpoint and caller. It is the only place that repeats a call, and it
 * repeats GETs alone (at most twice, with full jitter, honouring `Retry-After`): a POST leaves at most once.
 */
export class ResilientFetch {
  readonly #options: ResilientFetchOptions;
  readonly #fetch: typeof nodeFetch;
  readonly #agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };
  // A kept connection may be closed by the service just as it is used. A GET is then repeated; a POST must not be.
  readonly #recent = new RecentConnections();
  /** Of tries that are over and were not ended by them: making one costs as much as a read of the cache. */
  readonly #limits: AbortController[] = [];
  readonly #breakers: Readonly<Record<Endpoint, EndpointBreaker>>;

  constructor(options: ResilientFetchOptions) {
    this.#options = options;
    this.#fetch = options.fetch ?? nodeFetch;
    const { breakerResetMs: resetMs, monotonicNow } = options;
    const breaker = () => new EndpointBreaker({ resetMs, ...(monotonicNow && { now: monotonicNow }) });
    this.#breakers = { createClientLink: breaker(), taxpayerToken: breaker(), refreshJob: breaker() };
  }

  /**
   * @throws GatewayError UPSTREAM_TIMEOUT, UPSTREAM_UNAVAILABLE, UPSTREAM_INVALID_RESPONSE, or for a POST that may have
   *   arrived OUTCOME_UNKNOWN; whatever `beforeTry` throws
   */
  async call(request: ServiceRequest): Promise<ServiceAnswer> {
    if (request.signal?.aborted) throw upstreamTimeout(request.signal.reason);
    return request.method === 'POST' ? this.#callOnce(request) : this.#callRepeatedly(request);
  }

  /** `open` while calls of anybody are refused without being made. */
  breakerState(endpoint: Endpoint): BreakerState {
    return this.#breakers[endpoint].state;
  }

  /** With one try there is one limit, the shorter of the two. */
  async #callOnce(request: ServiceRequest): Promise<ServiceAnswer> {
    const limitMs = Math.min(this.#options.timeoutMs, this.#options.deadlineMs);
    try {
      return await this.#breakers[request.endpoint].run(request, (record) =>
        this.#try(request, record, limitMs, request.signal),
      );
    } catch (error) {
      throw this.#translate(error, request.method);
    }
  }

  async #callRepeatedly(request: ServiceRequest): Promise<ServiceAnswer> {
    const deadline = new AbortController();
    const abort = () => deadline.abort();
    const timer = setTimeout(abort, this.#options.deadlineMs);
    request.signal?.addEventListener('abort', abort, { once: true });
    try {
      return await this.#breakers[request.endpoint].run(request, (record) =>
        this.#tryAndRepeat(request, record, deadline.signal),
      );
    } catch (error) {
      throw this.#translate(error, request.method);
    } finally {
      clearTimeout(timer);
      request.signal?.removeEventListener('abort', abort);
    }
  }

  async #tryAndRepeat(request: ServiceRequest, record: CallRecord, deadline: AbortSignal): Promise<ServiceAnswer> {
    const endsAt = performance.now() + this.#options.deadlineMs;
    for (let repetition = 1; ; repetition += 1) {
      try {
        return await this.#try(request, record, this.#options.timeoutMs, deadline);
      } catch (error) {
        if (repetition > maxRepetitions || !isWorthRepeating(error, this.#options.deadlineMs)) throw error;
        const pauseMs = this.#pauseBefore(repetition, error);
        if (performance.now() + pauseMs >= endsAt) throw error;
        await sleep(pauseMs, undefined, { signal: deadline }).catch(() => {});
        if (deadline.aborted) throw error;
      }
    }
  }

  /** Closes the kept connections. */
  stop(): void {
    this.#agents.http.destroy();
    this.#agents.https.destroy();
    this.#recent.stop();
  }

  async #try(
    request: ServiceRequest,
    record: CallRecord,
    limitMs: number,
    deadline: AbortSignal | undefined,
  ): Promise<ServiceAnswer> {
    await request.beforeTry?.();
    if (deadline?.aborted) throw upstreamTimeout(deadline.reason);
    const startedAt = performance.now();
    const limit = this.#limits.pop() ?? new AbortController();
    const abort = () => limit.abort();
    const timer = setTimeout(abort, limitMs);
    deadline?.addEventListener('abort', abort, { once: true });
    let outcome: TryOutcome = 'ok';
    const { agent, connection } = this.#sendOn(request);
    try {
      const response = await this.#fetch(request.url, {
        method: request.method,
        headers: request.headers,
        body: request.body ?? null,
        redirect: 'manual',
        agent,
        signal: limit.signal as never,
      });
      const answer = await readAnswer(response, this.#options.maxResponseBytes, limit);
      record.outcome = 'answered';
      if (answer.status >= 400) outcome = 'client-error';
      const isOver = answer.status < 300 && !limit.signal.aborted;
      if (isOver && this.#limits.length < maxSpareLimits) this.#limits.push(limit);
      return answer;
    } catch (error) {
      const failure = failureOf(error, limit.signal.aborted);
      if (connection !== undefined) failure.mayHaveArrived = connection.established;
      outcome = failure.kind;
      // An answer that breaks the contract is a sign of life all the same.
      record.outcome = failure.kind === 'invalid' ? 'answered' : 'failed';
      throw failure;
    } finally {
      clearTimeout(timer);
      deadline?.removeEventListener('abort', abort);
      this.#options.onTry?.(request.endpoint, outcome, (performance.now() - startedAt) / 1000);
    }
  }

  #sendOn({ method, url }: ServiceRequest): { readonly agent: HttpAgent; readonly connection?: OneConnection } {
    if (method === 'POST') return this.#recent.forOneRequest(url);
    return { agent: url.startsWith('https:') ? this.#agents.https : this.#agents.http };
  }

  #pauseBefore(repetition: number, { retryAfterSeconds: asked = 0 }: TryFailure): number {
    const jittered = (this.#options.random ?? Math.random)() * 100 * 2 ** repetition;
    return Math.max(jittered, asked * 1000);
  }

  #translate(error: unknown, method: 'GET' | 'POST'): unknown {
    if (error instanceof BreakerOpen) {
      return new GatewayError('UPSTREAM_UNAVAILABLE', 'The service has kept failing and is left alone for a moment', {
        retryAfterSeconds: Math.ceil(error.retryAfterMs / 1000),
        refused: error.refused,
        cause: error,
      });
    }
    if (!(error instanceof TryFailure)) return error;
    if (method === 'POST' && mayHaveTakenEffect(error)) return outcomeUnknown(error);
    const advice = error.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: error.retryAfterSeconds };
    switch (error.kind) {
      case 'timeout':
        return upstreamTimeout(error);
      case 'network':
        return new GatewayError('UPSTREAM_UNAVAILABLE', 'The service cannot be reached', { cause: error.cause });
      case 'server-error':
        return new GatewayError('UPSTREAM_UNAVAILABLE', 'The service failed to answer', {
          ...advice,
          cause: error.cause,
        });
      case 'invalid':
        return new GatewayError('UPSTREAM_INVALID_RESPONSE', 'The service gave an answer that breaks its contract', {
          cause: error.cause,
        });
    }
  }
}

/** Connection-level failures arrive as `system` errors; a body that cannot be unpacked or bounded is an invalid answer. */
function failureOf(error: unknown, aborted: boolean): TryFailure {
  if (error instanceof TryFailure) return error;
  if (aborted) return new TryFailure('timeout', undefined, { cause: error });
  const { code = '' } = error as NodeJS.ErrnoException;
  // Z_ and ERR__ERROR_FORMAT are zlib's (gzip and Brotli), HPE_ those of Node's HTTP parser.
  const broken = /^(Z_|ERR__ERROR_|ERR_BROTLI_|HPE_)/.test(code);
  return new TryFailure(broken ? 'invalid' : 'network', undefined, { cause: error });
}

/** A service that asks for a longer pause than half the deadline is not waited for: the caller is told when to return. */
function isWorthRepeating(error: unknown, deadlineMs: number): error is TryFailure {
  if (!(error instanceof TryFailure) || (error.retryAfterSeconds ?? 0) * 1000 > deadlineMs / 2) return false;
  return error.kind === 'timeout' || error.kind === 'network' || error.kind === 'server-error';
}

/** Whether the service may have acted on a request that has no answer to be used. Only a 503 says that it did not. */
function mayHaveTakenEffect({ kind, cause, mayHaveArrived }: TryFailure): boolean {
  return kind === 'server-error' ? (cause as { status: number }).status !== 503 : mayHaveArrived;
}
