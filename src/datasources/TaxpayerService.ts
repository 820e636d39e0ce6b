import { createHash } from 'node:crypto';
import { Secret } from '../config/secret.js';
import { credentialsRejected, GatewayError, outcomeUnknown } from '../errors/errors.js';
import type { CallGate } from '../upstream/CallGate.js';
import { ForbiddenRequests } from '../upstream/ForbiddenRequests.js';
import type { CallOptions, Endpoint, ResilientFetch, ServiceRequest } from '../upstream/ResilientFetch.js';
import type { ServiceAnswer } from '../upstream/readAnswer.js';
import { serviceUrl } from '../upstream/serviceUrl.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import {
  type ClientLink,
  type ClientLinkRequest,
  decodeClientLink,
  decodeJobStatus,
  decodeTokenRecord,
  type JobStatus,
  type TokenRecord,
} from './wire.js';

export interface ServiceCredentials {
  readonly clientId: string;
  readonly clientSecret: Secret;
}

export interface TaxpayerServiceOptions {
  readonly baseUrl: string;
  /** Sent as `Service-API-Version` on the two reading endpoints (interface, part 9). */
  readonly apiVersion: string;
  /** Asked for at each call, because the secret may be rotated while we run. */
  readonly credentials: () => ServiceCredentials;
  readonly http: ResilientFetch;
  readonly gate: CallGate;
  /** Deepest nesting of JSON that is accepted in an answer. */
  readonly maxDepth: number;
  /** Milliseconds of a clock that nobody sets. Default `performance.now`. */
  readonly monotonicNow?: () => number;
  /** One caller's calls are refused for a while, because different requests of theirs met a 403. */
  readonly onForbidden?: (endpoint: Endpoint) => void;
}

/** What a call is made with: taken once, so that its answer is judged by it whatever was rotated meanwhile. */
interface UsedCredentials {
  readonly bearer: string;
  /** Tells client secrets apart. */
  readonly fingerprint: string;
}

/** Thrown by {@link TaxpayerService.refreshJob} when the token is not taken, so that the token can be replaced; never leaves the datasources. */
export class AccessTokenRefused extends Error {}

/** The REST service, one method per endpoint (interface, part 4): exact requests out, validated answers in. */
export class TaxpayerService {
  readonly #options: TaxpayerServiceOptions;
  readonly #clientLinksUrl: string;
  readonly #forbidden: ForbiddenRequests;

  constructor(options: TaxpayerServiceOptions) {
    this.#options = options;
    this.#clientLinksUrl = serviceUrl(options.baseUrl, 'client-links');
    this.#forbidden = new ForbiddenRequests(options.monotonicNow);
  }

  /**
   * Creates a client link (interface, 4.1). Sends exactly the members that `request` has. Leaves at most once.
   *
   * @throws GatewayError OUTCOME_UNKNOWN when the request may have arrived and no usable answer came
   */
  async createClientLink(request: ClientLinkRequest, { holder }: CallOptions = {}): Promise<ClientLink> {
    const answer = await this.#callWithCredentials({
      endpoint: 'createClientLink',
      method: 'POST',
      url: this.#clientLinksUrl,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(request),
      holder,
    });
    try {
      refuseUnless(answer, 201);
      return decodeClientLink(answer, this.#options.maxDepth);
    } catch (error) {
      const isUnusable = error instanceof GatewayError && error.code === 'UPSTREAM_INVALID_RESPONSE';
      throw isUnusable ? outcomeUnknown(error) : error;
    }
  }

  /**
   * Reads the token record of a taxpayer (interface, 4.2): the call to make as rarely as possible.
   *
   * @param beforeTry runs before each try, also a repeated one
   */
  async tokenRecord(
    id: TaxpayerId,
    signal: AbortSignal,
    beforeTry: () => Promise<void>,
    { holder }: CallOptions = {},
  ): Promise<TokenRecord> {
    const answer = await this.#callWithCredentials({
      endpoint: 'taxpayerToken',
      method: 'GET',
      url: serviceUrl(this.#options.baseUrl, 'auth', 'tax-payer', id, 'token'),
      headers: { 'Service-API-Version': this.#options.apiVersion },
      subject: id,
      holder,
      signal,
      beforeTry,
    });
    refuseUnless(answer, 200);
    return decodeTokenRecord(answer, id, this.#options.maxDepth);
  }

  /**
   * Reads the status of a refresh job with the taxpayer's token (interface, 4.3). `isProven`: a job was read with this
   * token before, so that an answer of 400 or 431 is not about it.
   *
   * @throws AccessTokenRefused when the service does not take the token
   */
  async refreshJob(
    taxpayerId: TaxpayerId,
    jobId: JobId,
    accessToken: Secret,
    signal: AbortSignal,
    { holder, isProven }: CallOptions & { readonly isProven: boolean },
  ): Promise<JobStatus> {
    const used = { bearer: accessToken.reveal(), fingerprint: this.#options.credentials().clientSecret.fingerprint() };
    const answer = await this.#call(used, {
      endpoint: 'refreshJob',
      method: 'GET',
      url: serviceUrl(this.#options.baseUrl, 'tax-payer', taxpayerId, 'refresh', jobId),
      headers: { 'Service-API-Version': this.#options.apiVersion },
      subject: `${taxpayerId}/${jobId}`,
      holder,
      signal,
    });
    if (answer.status === 401 || (!isProven && mayBeAboutTheHeaders(answer.status))) throw new AccessTokenRefused();
    if (answer.status === 403) {
      throw new GatewayError('TAXPAYER_NOT_AUTHORIZED', 'The service refuses access to this taxpayer');
    }
    refuseUnless(answer, 200);
    return decodeJobStatus(answer, taxpayerId, jobId, this.#options.maxDepth);
  }

  async #callWithCredentials(request: ServiceRequest): Promise<ServiceAnswer> {
    const { clientId, clientSecret } = this.#options.credentials();
    const bearer = Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString('base64');
    const used = { bearer, fingerprint: clientSecret.fingerprint() };
    const answer = await this.#call(used, request);
    if (answer.status === 401)
      throw await this.#options.gate.closeForCredentials(request.endpoint, used.fingerprint, 401);
    if (answer.status === 403) throw await this.#forbiddenTo(request, used);
    this.#forbidden.clear(placeOf(request, used), request.holder);
    return answer;
  }

  /** Notes a 403 and gives the error for its caller. */
  async #forbiddenTo(request: ServiceRequest, used: UsedCredentials): Promise<GatewayError> {
    const { endpoint, holder, subject } = request;
    switch (this.#forbidden.note(placeOf(request, used), holder, subject ?? hashOf(request.body ?? ''))) {
      case 'about-the-request':
        return rejected();
      case 'about-the-holder':
        this.#options.onForbidden?.(endpoint);
        return credentialsRejected({ holder });
      case 'about-the-credentials':
        return this.#options.gate.closeForCredentials(endpoint, used.fingerprint, 403);
    }
  }

  async #call(used: UsedCredentials, request: ServiceRequest): Promise<ServiceAnswer> {
    const { gate, http } = this.#options;
    const { endpoint, holder, headers, beforeTry } = request;
    const pass = async () => {
      if (this.#forbidden.refuses(placeOf(request, used), holder)) throw credentialsRejected({ holder });
      await gate.pass(endpoint, used.fingerprint);
      await beforeTry?.();
    };
    const answer = await http.call({
      ...request,
      headers: {
        Accept: 'application/json',
        'User-Agent': 'taxpayer-gateway',
        Authorization: `Bearer ${used.bearer}`,
        ...headers,
      },
      beforeTry: pass,
    });
    if (answer.status === 429) {
      throw await gate.closeForRateLimit(endpoint, used.fingerprint, answer.retryAfterSeconds);
    }
    return answer;
  }
}

function placeOf({ endpoint }: ServiceRequest, { fingerprint }: UsedCredentials): string {
  return `${endpoint} ${fingerprint}`;
}

function hashOf(body: string): string {
  return createHash('sha256').update(body).digest('base64url');
}

/** A token that is too long for a header, or holds what a server does not take in one, is answered with these. */
function mayBeAboutTheHeaders(status: number): boolean {
  return status === 400 || status === 431;
}

function rejected(): GatewayError {
  return new GatewayError('UPSTREAM_REJECTED', 'The service rejected the request');
}

/** What a final refusal means to the caller; statuses that need more than a message are handled where they are known. */
function refuseUnless(answer: ServiceAnswer, expected: 200 | 201): void {
  if (answer.status === expected) return;
  if (answer.status === 404 && expected === 200) {
    throw new GatewayError('NOT_FOUND', 'The service knows no such taxpayer or job');
  }
  if (answer.status >= 400 && answer.status < 500) throw rejected();
  throw new GatewayError('UPSTREAM_INVALID_RESPONSE', 'The service gave an answer that breaks its contract');
}
