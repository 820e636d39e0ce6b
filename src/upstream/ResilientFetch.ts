import type nodeFetch from 'node-fetch';
import type { Config } from '../config/config.js';
import { outcomeUnknown } from '../errors/errors.js';
import type { Agents } from '../network/agents.js';
import { type Answered, exchange, NoAnswer } from '../network/exchange.js';
import { pause } from '../process/pause.js';
import type { Trail } from '../process/Trail.js';
import { type CallRecord, EndpointBreaker } from './EndpointBreaker.js';

/** The endpoints that take the client credentials (interface, part 5); the others take a taxpayer's token. */
export const clientEndpoints = ['createClientLink', 'taxpayerToken'] as const;
export type ClientEndpoint = (typeof clientEndpoints)[number];

/** The endpoints of the service (interface, part 4); also labels of metrics, and names of pauses and breakers. */
export const endpoints = [...clientEndpoints, 'refreshJob'] as const;
export type Endpoint = (typeof endpoints)[number];

/** Makes one of something for each endpoint. */
export function byEndpoint<T>(make: (endpoint: Endpoint) => T): Readonly<Record<Endpoint, T>> {
  return Object.fromEntries(endpoints.map((endpoint) => [endpoint, make(endpoint)])) as Record<Endpoint, T>;
}

export interface CallOptions {
  /** Whom the call is made for. */
  readonly holder?: string | undefined;
  /** The trail of the operation that needs the call. */
  readonly trail?: Trail | undefined;
  /** When the call with all its tries ends (monotonic), if that is before its deadline. */
  readonly endsAt?: number | undefined;
  /** Runs before each try, also a repeated one; what it throws ends the call. */
  readonly beforeTry?: (() => Promise<void>) | undefined;
  /** The call keeps watchers of a record up to date, and counts against their share of the token budget. Nobody waits for it. */
  readonly isWatch?: boolean;
}

export interface ServiceRequest<T> extends CallOptions {
  /** Whom the call is about, if anybody. */
  readonly taxpayer?: string | undefined;
  readonly endpoint: Endpoint;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** With a body the request is a POST, which is sent at most once; without one it is a GET. */
  readonly body?: string | undefined;
  /** Reads the body of a 2xx answer. @throws NoAnswer when it breaks the contract */
  readonly decode: (json: unknown) => T;
}

export type TryOutcome = 'ok' | 'client-error' | NoAnswer['kind'];

export interface ResilientFetchOptions
  extends Pick<Config, 'UPSTREAM_TIMEOUT_MS' | 'UPSTREAM_DEADLINE_MS' | 'BREAKER_RESET_MS'> {
  /** Makes the connections. */
  readonly agents: Agents;
  /** Default: that of node-fetch. */
  readonly fetch?: typeof nodeFetch | undefined;
  /** After each try, with its duration in seconds. */
  readonly onTry?: (endpoint: Endpoint, outcome: TryOutcome, seconds: number) => void;
}

/** Most tries of a GET. A POST has one. */
export const maxTries = 3;

/**
 * Calls the service and returns or fails within a known time: a timeout for each try and a deadline for the whole call,
 * bounded bodies, no redirects, circuit breakers per endpoint, for each caller and for all. This is the only place that
 * retries a call, and only GETs (with full jitter, honouring `Retry-After`): a POST is sent at most once.
 */
export class ResilientFetch {
  readonly #breakers: Readonly<Record<Endpoint, EndpointBreaker>>;

  constructor(private readonly options: ResilientFetchOptions) {
    this.#breakers = byEndpoint(() => new EndpointBreaker(options.BREAKER_RESET_MS));
  }

  /**
   * @throws NoAnswer, or GatewayError OUTCOME_UNKNOWN for a POST that may have arrived, or UPSTREAM_UNAVAILABLE from an open
   *   breaker; whatever `beforeTry` throws
   */
  call<T>(request: ServiceRequest<T>): Promise<Answered<T>> {
    const { endpoint, body, holder } = request;
    const endsAt = Math.min(performance.now() + this.options.UPSTREAM_DEADLINE_MS, request.endsAt ?? Infinity);
    const breaker = this.#breakers[endpoint];
    const isPost = body !== undefined;
    const about = { ...request, subject: isPost ? crypto.randomUUID() : request.url }; // a POST counts by itself
    return breaker.run(about, async (record) => {
      for (let repetition = 0; ; repetition += 1) {
        await request.beforeTry?.();
        if (performance.now() >= endsAt) throw new NoAnswer('timeout', 'no time left for a try');
        try {
          return await this.#try(endsAt, request, record);
        } catch (error) {
          const pauseMs = this.#pauseAfter(repetition, error);
          const isLast = isPost || repetition === maxTries - 1;
          if (isLast || performance.now() + pauseMs >= endsAt) throw error;
          await pause(pauseMs);
          // Calls of others may have opened the breaker meanwhile.
          if (breaker.refusalOf(holder) !== undefined) throw error;
        }
      }
    });
  }

  async #try<T>(endsAt: number, request: ServiceRequest<T>, record: CallRecord): Promise<Answered<T>> {
    const { endpoint, url, headers, body, decode, trail } = request;
    const { fetch, UPSTREAM_TIMEOUT_MS, agents, onTry } = this.options;
    const startedAt = performance.now();
    const limitMs = Math.min(UPSTREAM_TIMEOUT_MS, endsAt - startedAt);
    const target = new URL(url);
    const method = body === undefined ? 'GET' : 'POST';
    let mayHaveArrived = false; // set only for a POST: a GET does no harm when repeated
    // A POST must not be sent twice: the service may close a kept connection just as the request is sent.
    const agent = method === 'POST' ? agents.newAgent(target, () => (mayHaveArrived = true)) : undefined;
    const init = { method, headers, body: body ?? null, agent };
    const answer = await exchange(agents, url, limitMs, decode, init, fetch)
      .catch(asFailure)
      .finally(() => agent?.destroy());
    const failure = answer instanceof NoAnswer ? answer : undefined;
    const { status } = answer;
    const outcome = failure?.kind ?? (Number(status) < 400 ? 'ok' : 'client-error');
    // For the breaker, an answer that breaks the contract still shows that the service is alive.
    const isFailed = failure ? outcome !== 'invalid' : status === 403 && failsBy403.has(endpoint);
    record.outcome = isFailed ? 'failed' : 'answered';
    const ms = performance.now() - startedAt;
    const { origin: server } = target;
    trail?.note({ endpoint, method, server, outcome, startedAt, ms, status, reason: failure?.reason });
    onTry?.(endpoint, outcome, ms / 1000);
    if (!(answer instanceof NoAnswer)) return answer;
    throw mayHaveArrived && !answer.isUndone ? outcomeUnknown(answer) : answer;
  }

  /** Milliseconds until the next try; Infinity for a failure that is not worth a retry. */
  #pauseAfter(repetition: number, error: unknown): number {
    if (!(error instanceof NoAnswer) || error.kind === 'invalid') return Infinity;
    const askedMs = (error.retryAfterSeconds ?? 0) * 1000;
    // If the service asks for a longer pause, there is no retry: the caller is told when to return.
    return askedMs > this.options.UPSTREAM_DEADLINE_MS / 2
      ? Infinity
      : Math.max(askedMs, Math.random() * 200 * 2 ** repetition);
  }
}

/** A 403 to the client credentials counts as a failure of the endpoint: nobody can tell whom it concerns. */
const failsBy403: ReadonlySet<Endpoint> = new Set(clientEndpoints);

/** What failed, to be noted like an answer. Rethrows any other error: it is a bug of ours. */
function asFailure(error: unknown): NoAnswer {
  if (error instanceof NoAnswer) return error;
  throw error;
}
