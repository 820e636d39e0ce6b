import { setTimeout as sleep } from 'node:timers/promises';
import fetch from 'node-fetch';
import { GatewayError, outcomeUnknown } from '../errors/errors.js';
import { Connections } from './Connections.js';
import { type BreakerCall, type BreakerState, type CallRecord, EndpointBreaker } from './EndpointBreaker.js';
import { readAnswer, type ServiceAnswer, TryFailure } from './readAnswer.js';

/** The endpoints of the service (interface, part 4); also the label of metrics, gates and breakers. */
export const endpoints = ['createClientLink', 'taxpayerToken', 'refreshJob'] as const;
export type Endpoint = (typeof endpoints)[number];

export type CallOptions = Pick<BreakerCall, 'holder'>;

export interface ServiceRequest extends BreakerCall {
  readonly endpoint: Endpoint;
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
  readonly random?: () => number;
  /** The clock of the breakers, in milliseconds: one that nobody sets. Default `performance.now`. */
  readonly monotonicNow?: () => number;
  /** After each try, with its duration in seconds. */
  readonly onTry?: (endpoint: Endpoint, outcome: TryOutcome, seconds: number) => void;
}

const maxRepetitions = 2;

/** What a try that failed means to the caller. */
const failures = {
  timeout: ['UPSTREAM_TIMEOUT', 'The service did not answer in time'],
  network: ['UPSTREAM_UNAVAILABLE', 'The service cannot be reached'],
  'server-error': ['UPSTREAM_UNAVAILABLE', 'The service failed to answer'],
  invalid: ['UPSTREAM_INVALID_RESPONSE', 'The service gave an answer that breaks its contract'],
} as const;

/**
 * Calls the service so that it answers, or fails, within a known time: a limit for each try and one for the whole call,
 * bounded bodies, no redirects, a circuit breaker per endpoint and caller. It is the only place that repeats a call, and it
 * repeats GETs alone (at most twice, with full jitter, honouring `Retry-After`): a POST leaves at most once.
 */
export class ResilientFetch {
  readonly #options: ResilientFetchOptions;
  readonly #connections = new Connections();
  readonly #breakers: Readonly<Record<Endpoint, EndpointBreaker>>;

  constructor(options: ResilientFetchOptions) {
    this.#options = options;
    const { breakerResetMs: resetMs, monotonicNow } = options;
    const breaker = () => new EndpointBreaker({ resetMs, ...(monotonicNow && { now: monotonicNow }) });
    this.#breakers = { createClientLink: breaker(), taxpayerToken: breaker(), refreshJob: breaker() };
  }

  /** `open` while calls of anybody are refused without being made. */
  breakerState(endpoint: Endpoint): BreakerState {
    return this.#breakers[endpoint].state;
  }

  /**
   * @throws GatewayError UPSTREAM_TIMEOUT, UPSTREAM_UNAVAILABLE, UPSTREAM_INVALID_RESPONSE, or for a POST that may have
   *   arrived OUTCOME_UNKNOWN; whatever `beforeTry` throws
   */
  async call(request: ServiceRequest): Promise<ServiceAnswer> {
    const endsAt = performance.now() + this.#options.deadlineMs;
    try {
      return await this.#breakers[request.endpoint].run(request, (record) => this.#callWithin(endsAt, request, record));
    } catch (error) {
      throw gatewayErrorOf(error);
    }
  }

  /** Closes the kept connections. */
  stop(): void {
    this.#connections.stop();
  }

  async #callWithin(endsAt: number, request: ServiceRequest, record: CallRecord): Promise<ServiceAnswer> {
    const maxTries = request.method === 'POST' ? 1 : 1 + maxRepetitions;
    for (let tries = 1; ; tries += 1) {
      refuseIfOver(endsAt, request.signal);
      await request.beforeTry?.();
      refuseIfOver(endsAt, request.signal);
      try {
        return await this.#try(endsAt, request, record);
      } catch (error) {
        if (tries === maxTries || !isWorthRepeating(error, this.#options.deadlineMs)) throw error;
        const pauseMs = this.#pauseAfter(tries, error);
        if (performance.now() + pauseMs >= endsAt) throw error;
        await sleep(pauseMs, undefined, { signal: request.signal }).catch(() => {});
        if (request.signal?.aborted) throw error;
      }
    }
  }

  async #try(endsAt: number, request: ServiceRequest, record: CallRecord): Promise<ServiceAnswer> {
    const { method, url, headers, body = null, signal } = request;
    const startedAt = performance.now();
    const limit = new AbortController();
    const abort = () => limit.abort();
    const timer = setTimeout(abort, Math.min(this.#options.timeoutMs, endsAt - startedAt));
    signal?.addEventListener('abort', abort, { once: true });
    const connection = { established: false };
    let outcome: TryOutcome = 'ok';
    try {
      const response = await fetch(url, {
        method,
        headers,
        body,
        redirect: 'manual',
        agent: method === 'POST' ? this.#connections.recentAgentFor(url, connection) : this.#connections.agentFor(url),
        signal: limit.signal as never,
      });
      const answer = await readAnswer(response, this.#options.maxResponseBytes, limit);
      record.outcome = 'answered';
      if (answer.status >= 400) outcome = 'client-error';
      return answer;
    } catch (error) {
      const failure = failureOf(error, limit.signal.aborted);
      outcome = failure.kind;
      // An answer that breaks the contract is a sign of life all the same.
      record.outcome = failure.kind === 'invalid' ? 'answered' : 'failed';
      // Of the answers that cannot be used, only a 503 says that nothing was done.
      throw connection.established && failure.answer?.status !== 503 ? outcomeUnknown(failure) : failure;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      this.#options.onTry?.(request.endpoint, outcome, (performance.now() - startedAt) / 1000);
    }
  }

  #pauseAfter(tries: number, { answer }: TryFailure): number {
    const jittered = (this.#options.random ?? Math.random)() * 100 * 2 ** tries;
    return Math.max(jittered, (answer?.retryAfterSeconds ?? 0) * 1000);
  }
}

function refuseIfOver(endsAt: number, signal: AbortSignal | undefined): void {
  if (signal?.aborted || performance.now() >= endsAt) throw new TryFailure('timeout', signal?.reason);
}

/** Connection-level failures arrive as `system` errors; a body that cannot be unpacked or bounded is an invalid answer. */
function failureOf(error: unknown, aborted: boolean): TryFailure {
  if (error instanceof TryFailure) return error;
  if (aborted) return new TryFailure('timeout', error);
  const { code = '' } = error as NodeJS.ErrnoException;
  // Z_ and ERR__ERROR_FORMAT are zlib's (gzip and Brotli), HPE_ those of Node's HTTP parser.
  const broken = /^(Z_|ERR__ERROR_|ERR_BROTLI_|HPE_)/.test(code);
  return new TryFailure(broken ? 'invalid' : 'network', error);
}

/** A service that asks for a longer pause than half the deadline is not waited for: the caller is told when to return. */
function isWorthRepeating(error: unknown, deadlineMs: number): error is TryFailure {
  if (!(error instanceof TryFailure) || error.kind === 'invalid') return false;
  return (error.answer?.retryAfterSeconds ?? 0) * 1000 <= deadlineMs / 2;
}

function gatewayErrorOf(error: unknown): unknown {
  if (!(error instanceof TryFailure)) return error;
  const [code, message] = failures[error.kind];
  const { retryAfterSeconds } = error.answer ?? {};
  const { cause } = error;
  return new GatewayError(code, message, { cause, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) });
}
