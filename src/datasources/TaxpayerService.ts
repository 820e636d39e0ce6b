import type { LeasedCacheOptions } from '../cache/Entry.js';
import type { SealedStore } from '../cache/SealedStore.js';
import type { Config } from '../config/config.js';
import type { Secret } from '../config/Secret.js';
import { credentialsRejected, GatewayError } from '../errors/errors.js';
import { NoAnswer } from '../network/exchange.js';
import { episodes } from '../observability/episodes.js';
import type { Surroundings } from '../services.js';
import {
  byEndpoint,
  type CallOptions,
  type ClientEndpoint,
  clientEndpoints,
  type Endpoint,
  type ResilientFetch,
  type ServiceRequest,
} from '../upstream/ResilientFetch.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import type { WatcherOptions } from './Watcher.js';
import type { ClientLink, ClientLinkRequest, JobStatus, TokenRecord } from './wire.js';
import { decodeClientLink, decodeJobStatus, decodeTokenRecord } from './wire.js';

interface TaxpayerServiceOptions extends Pick<Surroundings, 'config' | 'log' | 'metrics'> {
  readonly http: ResilientFetch;
  /** Holds the pauses of the fleet. */
  readonly store: SealedStore;
}

/** For the log, why the fleet pauses its calls. */
const pauseCauses = {
  'rate-limited': 'HTTP 429: the fleet stops calling for as long as the service asks',
  'credentials-rejected': 'HTTP 401: the fleet stops calling for 30 s at a time',
} as const;
type PauseReason = keyof typeof pauseCauses;

/** How long the fleet makes no call with client credentials that the service refused, in milliseconds. */
const credentialsPauseMs = 30_000;
/** Pause after a 429 without a believable `Retry-After`. */
const defaultPauseSeconds = 5;
/** Shortest pause after a 429, even with `Retry-After: 0`: the service did ask for fewer calls. */
const shortestPauseSeconds = 1;

/** One call of an endpoint, with the client credentials or a taxpayer's token. */
type Call<T> = Omit<ServiceRequest<T>, 'url' | 'headers'> & { readonly path: readonly string[] } & (
    | { readonly endpoint: ClientEndpoint; readonly token?: undefined }
    | { readonly endpoint: Exclude<Endpoint, ClientEndpoint>; readonly token: Secret }
  );

/** A read by `TokenBroker` or `RefreshJobs`, for a caller or for watchers. */
export interface ReadCall extends CallOptions {
  /** Starts a read only once per name, however often one request asks for it. */
  once?<View>(name: string, start: () => Promise<View>): Promise<View>;
}

/** The settings, and what every cached read of the service needs. */
export interface ReadingOptions
  extends Config,
    WatcherOptions,
    Pick<LeasedCacheOptions<unknown>, 'store' | 'workMs' | 'calls' | 'onRead' | 'onBytes'> {
  readonly service: TaxpayerService;
  /** Longest time that anything about a taxpayer is kept, in milliseconds. */
  readonly keepMs: number;
}

/** Thrown when the service refuses a taxpayer's token, so that the token can be replaced; never leaves the datasources. */
export class AccessTokenRefused extends Error {}

/** The REST service, one method per endpoint (interface, part 4): exact requests out, validated answers in. */
export class TaxpayerService {
  /** Logs the troubles of each endpoint when they begin and when they end. */
  readonly #report;

  constructor(private readonly options: TaxpayerServiceOptions) {
    const { config, log } = options;
    // Longer than the pause between two reads of a record that keeps failing: reads of other records, which succeed meanwhile,
    // must not end the episode.
    const quietMs = Math.max(config.BREAKER_RESET_MS, config.JOB_POLL_MAX_MS) + 5000;
    const begins = 'calls to the service are failing';
    const ends = 'calls to the service work again';
    this.#report = byEndpoint((endpoint) => episodes({ log, about: { endpoint }, begins, ends, quietMs }));
  }

  /**
   * Creates a client link (interface, 4.1). Sends exactly the members that `request` has, at most once.
   *
   * @throws GatewayError OUTCOME_UNKNOWN when the request may have arrived and no usable answer came
   */
  createClientLink(request: ClientLinkRequest, { holder, trail }: CallOptions): Promise<ClientLink> {
    const body = JSON.stringify(request);
    const path = ['client-links'];
    return this.#call({ holder, trail, endpoint: 'createClientLink', path, body, decode: decodeClientLink });
  }

  /** Reads the token record of a taxpayer (interface, 4.2). */
  tokenRecord(taxpayer: TaxpayerId, call: CallOptions): Promise<TokenRecord> {
    const path = ['auth', 'tax-payer', taxpayer, 'token'];
    const decode = (json: unknown) => decodeTokenRecord(json, taxpayer);
    return this.#call({ ...call, endpoint: 'taxpayerToken', path, taxpayer, decode });
  }

  /** Reads the status of a refresh job (interface, 4.3). @throws AccessTokenRefused */
  refreshJob(taxpayer: TaxpayerId, jobId: JobId, token: Secret, call: CallOptions): Promise<JobStatus> {
    const path = ['tax-payer', taxpayer, 'refresh', jobId];
    const decode = (json: unknown) => decodeJobStatus(json, taxpayer, jobId);
    return this.#call({ ...call, endpoint: 'refreshJob', path, taxpayer, token, decode });
  }

  /**
   * What a 2xx answer says: any 2xx will do, because its content is checked. Reports such an answer or a failure of the
   * service. Other answers, such as a 404, are not reported: a 403 may concern one caller alone, and a pause is reported by
   * itself.
   */
  async #call<T>(call: Call<T>): Promise<T> {
    const { config, http, store } = this.options;
    const { endpoint, path, body, token } = call;
    const report = this.#report[endpoint];
    const { UPSTREAM_CLIENT_SECRET: secret } = config;
    const ours = `${config.UPSTREAM_CLIENT_ID}:${secret.reveal()}`;
    const bearer = token?.reveal() ?? Buffer.from(ours).toString('base64');
    // A pause is for the secret that was sent, which may have been rotated since: that of an old one does not hold up a new one.
    const fingerprint = secret.fingerprint();
    const calling = http.call({
      ...call,
      url: serviceUrl(config.UPSTREAM_BASE_URL, ...path),
      headers: {
        Accept: 'application/json',
        'User-Agent': 'taxpayer-gateway',
        Authorization: `Bearer ${bearer}`,
        // Reads have a version (interface, part 9).
        ...(body === undefined
          ? { 'Service-API-Version': config.UPSTREAM_API_VERSION }
          : { 'Content-Type': 'application/json' }),
      },
      beforeTry: async () => {
        const coolDown = await store.coolDown(pauseOf(endpoint, fingerprint));
        if (coolDown !== undefined) throw pausedError(coolDown.value as PauseReason, coolDown.leftMs);
        await call.beforeTry?.();
      },
    });
    const { status, value, retryAfterSeconds } = await calling.catch((error) => {
      const failure = error.cause ?? error; // the cause of an unknown outcome
      if (failure instanceof NoAnswer) report(failure.kind, failure.reason);
      throw error;
    });
    if (value !== undefined) {
      report(undefined);
      return value;
    }
    if (status === 429) {
      const seconds = Math.max(shortestPauseSeconds, retryAfterSeconds ?? defaultPauseSeconds);
      throw await this.#pause([endpoint], fingerprint, 'rate-limited', 1000 * seconds);
    }
    if (status === 401 && token) throw new AccessTokenRefused();
    if (status === 401) {
      throw await this.#pause(clientEndpoints, fingerprint, 'credentials-rejected', credentialsPauseMs);
    }
    const reason = `HTTP ${status}`;
    if (status === 403 && token) {
      throw new GatewayError('TAXPAYER_NOT_AUTHORIZED', 'The service refuses access to this taxpayer', { reason });
    }
    if (status === 403) throw credentialsRejected(reason);
    if (status === 404 && call.taxpayer !== undefined) {
      throw new GatewayError('NOT_FOUND', 'The service knows no such taxpayer or job', { reason });
    }
    throw new GatewayError('UPSTREAM_REJECTED', 'The service rejected the request', { reason });
  }

  /** Keeps the whole fleet from calling the endpoints with this secret for a time. Returns the error for the caller. */
  async #pause(paused: readonly Endpoint[], fingerprint: string, reason: PauseReason, forMs: number) {
    const { store, metrics } = this.options;
    // A longer pause that was asked for earlier stays in force.
    await Promise.all(paused.map((each) => store.beginCoolDown(pauseOf(each, fingerprint), reason, forMs)));
    for (const each of paused) {
      metrics.callsPaused.add(`${each} ${reason}`);
      this.#report[each](reason, pauseCauses[reason]);
    }
    return pausedError(reason, forMs);
  }
}

/** The name of a pause in the store. */
const pauseOf = (endpoint: Endpoint, fingerprint: string) => ['pause', endpoint, fingerprint];

function pausedError(reason: PauseReason, leftMs: number): GatewayError {
  if (reason === 'credentials-rejected') return credentialsRejected('HTTP 401');
  const retryAfterSeconds = leftMs / 1000;
  const message = 'The service asked for fewer calls';
  return new GatewayError('UPSTREAM_RATE_LIMITED', message, { retryAfterSeconds, reason: 'HTTP 429' });
}

/**
 * The one place that builds a URL of the service (interface, part 4). Each segment becomes exactly one path segment: `URL`
 * collapses `.` and `..`, which `encodeURIComponent` leaves alone, so they are refused (TypeError) here as well as where
 * ids enter.
 */
export function serviceUrl(baseUrl: string, ...segments: readonly string[]): string {
  const path = segments.map((segment) => {
    if (segment === '' || segment === '.' || segment === '..' || !segment.isWellFormed()) {
      throw new TypeError('Expected a path segment, found an empty, dot or malformed one');
    }
    return encodeURIComponent(segment);
  });
  return `${baseUrl}/${path.join('/')}`;
}
