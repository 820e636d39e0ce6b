import { type AgentOptions, type ClientRequest, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import nodeFetch from 'node-fetch';
import { outcomeUnknown } from '../errors/errors.js';
import type { Trail } from '../observability/Trail.js';
import { pause } from '../process/pause.js';
import { type BreakerCall, type BreakerState, type CallRecord, EndpointBreaker } from './EndpointBreaker.js';
import { nothingDone, readAnswer, type ServiceAnswer, TryFailure } from './readAnswer.js';

/** The endpoints of the service (interface, part 4); also the label of metrics, gates and breakers. */
export const endpoints = ['createClientLink', 'taxpayerToken', 'refreshJob'] as const;
export type Endpoint = (typeof endpoints)[number];

export interface CallOptions extends Pick<BreakerCall, 'holder'> {
  /** The trail of the operation that needs the call. */
  readonly trail?: Trail | undefined;
}

export interface ServiceRequest extends BreakerCall, CallOptions {
  readonly endpoint: Endpoint;
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Aborting it ends the call with all its tries. */
  readonly signal?: AbortSignal | undefined;
  /** Runs before each try, also a repeated one; what it throws ends the call. */
  readonly beforeTry?: (() => Promise<void>) | undefined;
}

export type TryOutcome = 'ok' | 'client-error' | TryFailure['kind'];

export interface TryDetails {
  /** The HTTP status of the answer, if one came. */
  readonly status: number | undefined;
  /** Why the try failed, as in the error. */
  readonly reason: string | undefined;
  /** 0 for the first try of a call. */
  readonly repetition: number;
}

type NewAgent = (options: AgentOptions) => HttpAgent;

export interface ResilientFetchOptions {
  readonly timeoutMs: number;
  readonly deadlineMs: number;
  readonly breakerResetMs: number;
  readonly maxResponseBytes: number;
  /** Makes the agents, where a proxy or certificates are configured. Default: those of Node.js. */
  readonly newAgent?: NewAgent | undefined;
  /** Default: that of node-fetch. */
  readonly fetch?: typeof nodeFetch;
  /** After each try, with its duration in seconds. */
  readonly onTry?: (endpoint: Endpoint, outcome: TryOutcome, seconds: number, details: TryDetails) => void;
}

const maxRepetitions = 2;

/**
 * Calls the service and returns or fails within a known time: a timeout for each try and a deadline for the whole call,
 * bounded bodies, no redirects, circuit breakers per endpoint, for each caller and for all. This is the only place that
 * retries a call, and only GETs (at most twice, with full jitter, honouring `Retry-After`): a POST is sent at most once.
 */
export class ResilientFetch {
  readonly #connections: Connections;
  readonly #breakers: Readonly<Record<Endpoint, EndpointBreaker>>;

  constructor(private readonly options: ResilientFetchOptions) {
    this.#connections = new Connections(options.newAgent);
    const breaker = () => new EndpointBreaker(options.breakerResetMs);
    this.#breakers = { createClientLink: breaker(), taxpayerToken: breaker(), refreshJob: breaker() };
  }

  /** `open` while the calls of at least one holder are refused without being made. */
  breakerState(endpoint: Endpoint): BreakerState {
    return this.#breakers[endpoint].state;
  }

  /** @throws TryFailure, or GatewayError OUTCOME_UNKNOWN for a POST that may have arrived; whatever `beforeTry` throws */
  call(request: ServiceRequest): Promise<ServiceAnswer> {
    const endsAt = performance.now() + this.options.deadlineMs;
    return this.#breakers[request.endpoint].run(request, (record) => this.#callWithin(endsAt, request, record));
  }

  stop(): void {
    this.#connections.stop();
  }

  async #callWithin(endsAt: number, request: ServiceRequest, record: CallRecord): Promise<ServiceAnswer> {
    const maxTries = request.method === 'POST' ? 1 : 1 + maxRepetitions;
    for (let tries = 1; ; tries += 1) {
      this.#refuseIfOver(endsAt, request.signal);
      await request.beforeTry?.();
      this.#refuseIfOver(endsAt, request.signal);
      try {
        return await this.#try(endsAt, request, record, tries - 1);
      } catch (error) {
        const pauseMs = this.#pauseAfter(tries, error);
        if (tries === maxTries || performance.now() + pauseMs >= endsAt) throw error;
        await pause(pauseMs, { signal: request.signal });
        const isRefused = this.#breakers[request.endpoint].refusalOf(request.holder) !== undefined;
        if (isRefused || request.signal?.aborted) throw error; // others may have found an outage meanwhile
      }
    }
  }

  async #try(endsAt: number, request: ServiceRequest, record: CallRecord, repetition: number): Promise<ServiceAnswer> {
    const { method, url, headers, body = null, signal } = request;
    const { fetch = nodeFetch } = this.options;
    const startedAt = performance.now();
    const limit = new AbortController();
    const abort = () => limit.abort();
    const timer = setTimeout(abort, Math.min(this.options.timeoutMs, endsAt - startedAt));
    signal?.addEventListener('abort', abort, { once: true });
    const connection = { established: false };
    let outcome: TryOutcome = 'ok';
    let status: number | undefined;
    let reason: string | undefined;
    try {
      const response = await fetch(url, {
        method,
        headers,
        body,
        redirect: 'manual',
        agent: this.#connections.agentFor(url, method === 'POST' ? connection : undefined),
        signal: limit.signal as never,
      });
      const answer = await readAnswer(response, this.options.maxResponseBytes, limit);
      // The proxy gave this answer and forwarded nothing (RFC 9110, section 15.5.8).
      if (answer.status === 407 && this.options.newAgent !== undefined) {
        throw new TryFailure('network', { reason: 'PROXY_HTTP_407' }, 407);
      }
      record.outcome = 'answered';
      status = answer.status;
      if (answer.status >= 400) outcome = 'client-error';
      return answer;
    } catch (error) {
      const failure = failureOf(error, limit.signal.aborted);
      ({ kind: outcome, status, reason } = failure);
      // For the breaker, an answer that breaks the contract still shows that the service is alive.
      record.outcome = failure.kind === 'invalid' ? 'answered' : 'failed';
      // Only these failures guarantee that the service did not act on the request.
      const isCertain =
        nothingDone.has(failure.status) || failure.status === 407 || certificateRefused.test(failure.reason ?? '');
      throw connection.established && !isCertain ? outcomeUnknown(failure) : failure;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      const seconds = (performance.now() - startedAt) / 1000;
      request.trail?.call(request.endpoint, outcome, seconds);
      this.options.onTry?.(request.endpoint, outcome, seconds, { status, reason, repetition });
    }
  }

  #refuseIfOver(endsAt: number, signal: AbortSignal | undefined): void {
    if (!signal?.aborted && performance.now() < endsAt) return;
    throw new TryFailure('timeout', { cause: signal?.reason, reason: 'no time left for a try' });
  }

  /** Milliseconds until the next try; Infinity for a failure that is not worth a retry. */
  #pauseAfter(tries: number, error: unknown): number {
    const { deadlineMs } = this.options;
    if (!(error instanceof TryFailure) || error.kind === 'invalid') return Infinity;
    const askedMs = (error.retryAfterSeconds ?? 0) * 1000;
    // If the service asks for a longer pause, there is no retry: the caller is told when to return.
    return askedMs > deadlineMs / 2 ? Infinity : Math.max(askedMs, Math.random() * 100 * 2 ** tries);
  }
}

/** The service refused our client certificate. In TLS 1.3 the alert comes after the request was sent, still unread. */
const certificateRefused = /^ERR_SSL_\w+_ALERT_\w*(CERTIFICATE|UNKNOWN_CA)/;

/** Connection-level failures arrive as `system` errors; a body that cannot be unpacked or bounded is an invalid answer. */
function failureOf(error: unknown, aborted: boolean): TryFailure {
  if (error instanceof TryFailure) return error;
  if (aborted) return new TryFailure('timeout', { cause: error, reason: 'no answer in time' });
  const { code = '' } = error as NodeJS.ErrnoException;
  // Z_ and ERR__ERROR_FORMAT are zlib's (gzip and Brotli), HPE_ those of Node's HTTP parser.
  const broken = /^(Z_|ERR__ERROR_|ERR_BROTLI_|HPE_)/.test(code);
  // A code is a constant of Node.js, OpenSSL or zlib; the message may reveal more.
  const known = /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : 'the connection was lost';
  return new TryFailure(broken ? 'invalid' : 'network', { cause: error, reason: known });
}

/**
 * Idle timeout, in milliseconds, of the connections for requests that must not be retried. Services close connections after
 * seconds of idleness, perhaps just as a request is sent: on a connection used this recently that does not happen.
 */
const idleMs = 1000;

/** With the members that the types lack; `addRequest` is what Node's HTTP client calls. */
type Agent = HttpAgent & {
  defaultPort: number;
  options: object;
  addRequest(request: ClientRequest, ...rest: unknown[]): void;
};

/** The keep-alive connections to the service: opening one costs as much as a call. */
class Connections {
  readonly #any;
  readonly #recent;

  constructor(newAgent: NewAgent | undefined) {
    const agents = (options: AgentOptions) => {
      const own = newAgent?.(options);
      return { http: own ?? new HttpAgent(options), https: own ?? new HttpsAgent(options) };
    };
    this.#any = agents({ keepAlive: true });
    this.#recent = agents({ keepAlive: true, timeout: idleMs });
  }

  /**
   * With `connection`, the agent for one request that must not be retried. Sets `established` once the connection is open (for
   * `https:` with the certificate accepted): until then the request cannot have arrived, whatever the error says.
   */
  agentFor(url: string, connection?: { established: boolean }): HttpAgent {
    const protocol = url.startsWith('https:') ? 'https' : 'http';
    if (!connection) return this.#any[protocol];
    const shared = this.#recent[protocol] as Agent;
    const addRequest: Agent['addRequest'] = (request, ...rest) => {
      request.once('socket', (socket: Duplex) => {
        if (request.reusedSocket) connection.established = true;
        else socket.once(protocol === 'https' ? 'secureConnect' : 'connect', () => (connection.established = true));
      });
      shared.addRequest(request, ...rest);
    };
    // Does not inherit from the shared agent: V8 makes an object slow once it is a prototype.
    const { defaultPort, options, maxSockets } = shared;
    return { protocol: `${protocol}:`, defaultPort, options, maxSockets, keepAlive: true, addRequest } as never;
  }

  stop(): void {
    for (const agent of [this.#any, this.#recent].flatMap(Object.values)) agent.destroy();
  }
}
