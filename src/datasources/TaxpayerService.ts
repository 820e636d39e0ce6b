import type { LeasedCacheOptions } from '../cache/Entry.js';
import type { Config } from '../config/config.js';
import type { Secret } from '../config/Secret.js';
import { credentialsRejected, GatewayError } from '../errors/errors.js';
import { NoAnswer } from '../network/exchange.js';
import type { Pauses } from '../upstream/Pauses.js';
import type {
  CallOptions,
  ClientEndpoint,
  Endpoint,
  ResilientFetch,
  ServiceRequest,
} from '../upstream/ResilientFetch.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import type { WatcherOptions } from './Watcher.js';
import type { ClientLink, ClientLinkRequest, JobStatus, TokenRecord } from './wire.js';
import { decodeClientLink, decodeJobStatus, decodeTokenRecord } from './wire.js';

interface TaxpayerServiceOptions {
  readonly config: Pick<Config, 'upstream' | 'UPSTREAM_API_VERSION'>;
  readonly http: ResilientFetch;
  readonly pauses: Pauses;
  /** Called after a call with all its tries; `failure` says what was wrong with the service, if anything. */
  readonly onOutcome: (endpoint: Endpoint, failure?: NoAnswer) => void;
}

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

type CacheSetting = 'store' | 'memoryBytes' | 'workMs' | 'calls' | 'onRead' | 'onBytes';

/** What every cached read of the service needs. */
export interface ReadingOptions extends Pick<LeasedCacheOptions<unknown>, CacheSetting> {
  readonly service: TaxpayerService;
  /** Longest time that anything about a taxpayer is kept, in milliseconds. */
  readonly keepMs: number;
  readonly watching: WatcherOptions;
}

/** Thrown when the service refuses a taxpayer's token, so that the token can be replaced; never leaves the datasources. */
export class AccessTokenRefused extends Error {}

/** The REST service, one method per endpoint (interface, part 4): exact requests out, validated answers in. */
export class TaxpayerService {
  constructor(private readonly options: TaxpayerServiceOptions) {}

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
   * What a 2xx answer says: any 2xx will do, because its content is checked. Reports to `onOutcome` such an answer or a failure of
   * the service. Other answers, such as a 404, are not reported: a 403 may concern one caller alone, and a pause is reported by
   * itself.
   */
  async #call<T>(call: Call<T>): Promise<T> {
    const { config, pauses, http, onOutcome } = this.options;
    const { endpoint, path, body, token } = call;
    const { baseUrl, clientId, clientSecret } = config.upstream;
    const bearer = token?.reveal() ?? Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString('base64');
    // A refusal counts against the secret that was sent, which may have been rotated since.
    const fingerprint = clientSecret.fingerprint();
    const calling = http.call({
      ...call,
      url: serviceUrl(baseUrl, ...path),
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
        await pauses.check(endpoint, fingerprint);
        await call.beforeTry?.();
      },
    });
    const { status, value, retryAfterSeconds } = await calling.catch((error) => {
      const failure = error.cause ?? error; // the cause of an unknown outcome
      if (failure instanceof NoAnswer) onOutcome(endpoint, failure);
      throw error;
    });
    if (value !== undefined) {
      onOutcome(endpoint);
      return value;
    }
    if (status === 429) throw await pauses.beginAfter429(endpoint, fingerprint, retryAfterSeconds);
    if (status === 401) throw token ? new AccessTokenRefused() : await pauses.beginAfter401(fingerprint);
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
