import { hash } from 'node:crypto';
import type { Secret } from '../config/secret.js';
import { credentialsRejected, GatewayError, outcomeUnknown } from '../errors/errors.js';
import type { CallGate } from '../upstream/CallGate.js';
import { ForbiddenRequests } from '../upstream/ForbiddenRequests.js';
import type { CallOptions, Endpoint, ResilientFetch } from '../upstream/ResilientFetch.js';
import { type ServiceAnswer, TryFailure } from '../upstream/readAnswer.js';
import { serviceUrl } from '../upstream/serviceUrl.js';
import type { Credential } from './credentials.js';
import type { JobId, TaxpayerId, WrittenIds } from './identifiers.js';
import type { ClientLink, ClientLinkRequest, TokenRecord } from './wire.js';
import { contractBreach, decoders } from './wire.js';

export interface TaxpayerServiceOptions {
  readonly baseUrl: string;
  /** Sent as `Service-API-Version` on the two reading endpoints (interface, part 9). */
  readonly apiVersion: string;
  /** Asked for at each call, because the secret may be rotated while we run. */
  readonly credentials: () => { readonly clientId: string; readonly clientSecret: Secret };
  readonly http: ResilientFetch;
  readonly gate: CallGate;
  /** Deepest nesting of a record's metadata. */
  readonly maxDepth: number;
  /** Called when a caller's calls will be refused for a while, because several different requests of that caller got a 403. */
  readonly onForbidden: (endpoint: Endpoint) => void;
  /** Called after a call with all its tries; `failure` says what was wrong with the service, if anything. */
  readonly onOutcome?: (endpoint: Endpoint, failure?: ServiceFailure) => void;
}

/** What the service did wrong, and how in a few words. */
export interface ServiceFailure {
  readonly kind: TryFailure['kind'];
  readonly reason: string;
}

/** One call of an endpoint: with a body a POST, without one a GET. */
interface Call extends CallOptions {
  readonly endpoint: Endpoint;
  readonly path: readonly string[];
  readonly taxpayer?: TaxpayerId;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** Runs before each try, retries included; an error it throws ends the call before that try. */
  readonly beforeTry?: (() => Promise<void>) | undefined;
}

interface Read extends Omit<Call, 'endpoint' | 'path' | 'taxpayer' | 'body'> {
  readonly written?: WrittenIds | undefined;
}

/** Thrown when the service refuses a taxpayer's token, so that the token can be replaced; never leaves the datasources. */
export class AccessTokenRefused extends Error {}

/** The REST service, one method per endpoint (interface, part 4): exact requests out, validated answers in. */
export class TaxpayerService {
  readonly #forbidden = new ForbiddenRequests();
  readonly #decode: ReturnType<typeof decoders>;

  constructor(private readonly options: TaxpayerServiceOptions) {
    this.#decode = decoders(options.maxDepth);
  }

  /**
   * Creates a client link (interface, 4.1). Sends exactly the members that `request` has, at most once.
   *
   * @throws GatewayError OUTCOME_UNKNOWN when the request may have arrived and no usable answer came
   */
  async createClientLink(request: ClientLinkRequest, { holder, trail }: CallOptions): Promise<ClientLink> {
    const endpoint = 'createClientLink';
    const body = JSON.stringify(request);
    return this.#watched(endpoint, async () => {
      const answer = await this.#callAsClient({ endpoint, path: ['client-links'], body, holder, trail });
      try {
        return this.#decode.clientLink(jsonOf(answer));
      } catch (error) {
        const isUnusable = error instanceof GatewayError && error.code === 'UPSTREAM_INVALID_RESPONSE';
        throw isUnusable ? outcomeUnknown(error) : error;
      }
    });
  }

  /** Reads the token record of a taxpayer (interface, 4.2). */
  async tokenRecord(id: TaxpayerId, { signal, beforeTry, written, ...call }: Read): Promise<TokenRecord> {
    const path = ['auth', 'tax-payer', written?.get(id) ?? id, 'token'];
    return this.#watched('taxpayerToken', async () => {
      const target = { endpoint: 'taxpayerToken', path, taxpayer: id } as const;
      const answer = await this.#callAsClient({ ...call, ...target, signal, beforeTry });
      return this.#decode.tokenRecord(foundIn(answer), id);
    });
  }

  /** Reads the status of a refresh job (interface, 4.3). @throws AccessTokenRefused */
  async refreshJob(taxpayer: TaxpayerId, jobId: JobId, credential: Credential, { written, ...call }: Read) {
    const path = ['tax-payer', written?.get(taxpayer) ?? taxpayer, 'refresh', written?.get(jobId) ?? jobId];
    return this.#watched('refreshJob', async () => {
      const target = { endpoint: 'refreshJob', path, taxpayer } as const;
      const answer = await this.#callWithToken(credential, { ...call, ...target });
      return this.#decode.jobStatus(foundIn(answer), taxpayer, jobId);
    });
  }

  /** Reports to `onOutcome` a success or a failure of the service; other errors, such as NOT_FOUND, are not reported. */
  async #watched<T>(endpoint: Endpoint, work: () => Promise<T>): Promise<T> {
    const { onOutcome } = this.options;
    try {
      const result = await work();
      onOutcome?.(endpoint);
      return result;
    } catch (error) {
      const failure = failureIn(error);
      if (failure !== undefined) onOutcome?.(endpoint, failure);
      throw error;
    }
  }

  /** For endpoints that take a taxpayer's token. */
  async #callWithToken({ accessToken }: Credential, call: Call): Promise<ServiceAnswer> {
    const fingerprint = this.options.credentials().clientSecret.fingerprint();
    const answer = await this.#call(accessToken.reveal(), fingerprint, call);
    if (answer.status === 401) throw new AccessTokenRefused();
    if (answer.status !== 403) return answer;
    const message = 'The service refuses access to this taxpayer';
    throw new GatewayError('TAXPAYER_NOT_AUTHORIZED', message, { reason: 'HTTP 403' });
  }

  /** For endpoints that take the client credentials. A refusal counts against those sent, which may have been rotated since. */
  async #callAsClient(call: Call): Promise<ServiceAnswer> {
    const { endpoint, holder } = call;
    const { clientId, clientSecret } = this.options.credentials();
    const bearer = Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString('base64');
    const fingerprint = clientSecret.fingerprint();
    const answer = await this.#call(bearer, fingerprint, call);
    if (answer.status === 401) throw await this.options.gate.closeForCredentials(endpoint, fingerprint, 401);
    if (answer.status === 403) throw await this.#forbiddenTo(call, fingerprint);
    this.#forbidden.clear(placeOf(call, fingerprint), holder);
    return answer;
  }

  /** Records a 403 and returns the error for its caller. */
  async #forbiddenTo(call: Call, fingerprint: string): Promise<GatewayError> {
    const { endpoint, holder } = call;
    const request = subjectOf(call) ?? hash('sha256', call.body ?? '');
    switch (this.#forbidden.note(placeOf(call, fingerprint), holder, request)) {
      case 'about-the-request':
        return rejected(403);
      case 'about-the-holder':
        this.options.onForbidden(endpoint);
        return credentialsRejected(forbiddenReason, { holder });
      case 'about-the-credentials':
        return this.options.gate.closeForCredentials(endpoint, fingerprint, 403);
    }
  }

  async #call(bearer: string, fingerprint: string, call: Call): Promise<ServiceAnswer> {
    const { baseUrl, apiVersion, gate, http } = this.options;
    const { endpoint, path, taxpayer, body, holder, trail, signal } = call;
    const answer = await http.call({
      endpoint,
      taxpayer,
      holder,
      trail,
      signal,
      body,
      url: serviceUrl(baseUrl, ...path),
      subject: subjectOf(call),
      headers: {
        Accept: 'application/json',
        'User-Agent': 'taxpayer-gateway',
        Authorization: `Bearer ${bearer}`,
        ...(body === undefined ? { 'Service-API-Version': apiVersion } : { 'Content-Type': 'application/json' }),
      },
      beforeTry: async () => {
        if (this.#forbidden.refuses(placeOf(call, fingerprint), holder)) {
          throw credentialsRejected(forbiddenReason, { holder });
        }
        await gate.pass(endpoint, fingerprint);
        await call.beforeTry?.();
      },
    });
    if (answer.status === 429) throw await gate.closeForRateLimit(endpoint, fingerprint, answer.retryAfterSeconds);
    return answer;
  }
}

function failureIn(error: unknown): ServiceFailure | undefined {
  const own = error instanceof GatewayError && error.code === 'OUTCOME_UNKNOWN' ? error.cause : error;
  if (!(own instanceof GatewayError)) return undefined;
  const kind = own instanceof TryFailure ? own.kind : own.code === 'UPSTREAM_INVALID_RESPONSE' ? 'invalid' : undefined;
  return kind && { kind, reason: own.reason ?? kind };
}

/** Identifies the taxpayer or job that a GET is about, by its path; undefined for a POST. */
const subjectOf = ({ path, body }: Call) => (body === undefined ? path.join('/') : undefined);
const placeOf = ({ endpoint }: Call, fingerprint: string) => `${endpoint} ${fingerprint}`;
const forbiddenReason = "HTTP 403 to this caller's requests";
const rejected = (status: number) =>
  new GatewayError('UPSTREAM_REJECTED', 'The service rejected the request', { reason: `HTTP ${status}` });

/** As {@link jsonOf}, for an answer about one taxpayer or job. @throws GatewayError NOT_FOUND */
function foundIn(answer: ServiceAnswer): unknown {
  if (answer.status !== 404) return jsonOf(answer);
  throw new GatewayError('NOT_FOUND', 'The service knows no such taxpayer or job', { reason: 'HTTP 404' });
}

/**
 * The body of a 2xx answer: any 2xx will do, because its content is checked. Statuses that need more than an error (401, 403,
 * 429) came before.
 */
function jsonOf({ status, json }: ServiceAnswer): unknown {
  if (status >= 200 && status < 300) return json;
  throw status >= 400 && status < 500 ? rejected(status) : contractBreach(`HTTP ${status}`);
}
