import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ApolloServer, HeaderMap } from '@apollo/server';
import type { GraphQLFormattedError } from 'graphql';
import type { Authenticator } from '../auth.js';
import { routerSecretMatches } from '../auth.js';
import { type Caller, router } from '../caller.js';
import { RequestContext, type Services } from '../context.js';
import { GatewayError } from '../errors.js';
import type { Metrics } from '../Metrics.js';
import { isBug, maskError } from '../maskError.js';
import type { Secret } from '../secret.js';
import {
  type GraphQLRequest,
  type MediaType,
  mediaTypeFor,
  type RequestLimits,
  readGraphQLRequest,
} from './graphqlRequest.js';
import type { RateLimit } from './RateLimit.js';
import type { TrustedDocuments } from './trustedDocuments.js';

export interface GraphQLEndpointOptions {
  readonly apollo: ApolloServer<RequestContext>;
  readonly authenticator: Authenticator;
  readonly services: Services;
  readonly metrics: Metrics;
  readonly rateLimit: RateLimit;
  /** The documents that may run; undefined for any. */
  readonly trustedDocuments: TrustedDocuments | undefined;
  readonly requestLimits: RequestLimits;
  readonly suggestions: boolean;
  readonly routerSecrets: () => { readonly current: Secret | undefined; readonly previous: Secret | undefined };
  readonly onBug: (error: unknown, requestId: string) => void;
}

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/;

/** `/graphql` over HTTP: who is calling, what they ask, the answer in the form they accept. */
export class GraphQLEndpoint {
  readonly #options: GraphQLEndpointOptions;

  constructor(options: GraphQLEndpointOptions) {
    this.#options = options;
  }

  /** Answers one request. Never rejects: whatever happens becomes an answer in GraphQL's form. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const requestId = requestIdOf(request);
    response.setHeader('x-request-id', requestId);
    response.setHeader('cache-control', 'no-store');
    let outcome = 'ok';
    try {
      const mediaType = mediaTypeFor(request.headers.accept);
      const caller = await this.callerOf(request);
      this.#options.rateLimit.admit(caller, request.socket.remoteAddress);
      const fromRouter = this.#fromRouter(request);
      const parameters = this.#trusted(await readGraphQLRequest(request, this.#options.requestLimits), fromRouter);
      const context = new RequestContext(
        { caller, requestId, fromRouter, signal: leaving(response) },
        this.#options.services,
      );
      outcome = await this.#execute(response, { parameters, context, mediaType });
    } catch (error) {
      outcome = 'refused';
      this.#refuse(response, error, requestId);
    }
    this.#options.metrics.requests.inc({ transport: 'http', outcome });
    this.#options.metrics.requestSeconds.observe({ transport: 'http' }, (performance.now() - startedAt) / 1000);
  }

  /**
   * The caller a request or socket upgrade names. A router that presents its secret needs no user's token to read the schema.
   *
   * @throws GatewayError UNAUTHENTICATED (401) or AUTH_UNAVAILABLE (503)
   */
  callerOf(request: IncomingMessage): Caller | Promise<Caller> {
    const { authorization } = request.headers;
    const { authenticator } = this.#options;
    if (authorization === undefined && authenticator.requiresToken && this.#fromRouter(request) === true) return router;
    return authenticator.authenticate(authorization);
  }

  /** The document that may run. A router that presents its secret writes its own; whom it serves is its to restrict. */
  #trusted(parameters: GraphQLRequest, fromRouter: boolean | undefined): GraphQLRequest {
    const { trustedDocuments } = this.#options;
    if (trustedDocuments === undefined || fromRouter === true) return parameters;
    // Without extensions: Apollo would take an id in them for a persisted query of its own.
    return { ...parameters, query: trustedDocuments.resolve(parameters), extensions: undefined };
  }

  async #execute(
    response: ServerResponse,
    operation: { readonly parameters: GraphQLRequest; readonly context: RequestContext; readonly mediaType: MediaType },
  ): Promise<'ok' | 'errors'> {
    const { method, documentId: _, ...parameters } = operation.parameters;
    const { body, http } = await this.#options.apollo.executeOperation(
      {
        ...withoutAbsent(parameters),
        http: { method, headers: new HeaderMap(), search: '', body: undefined },
      },
      { contextValue: operation.context },
    );
    if (body.kind !== 'single') throw new Error('The answer is incremental, which no schema of ours asks for');
    const { data, errors } = body.singleResult;
    const finished = errors?.map((error) => this.#finish(error, operation.context.requestId));
    const status =
      data === undefined && operation.mediaType === 'application/json, refusals as 200' ? 200 : http.status;
    for (const [name, value] of http.headers) if (name === 'allow') response.setHeader(name, value);
    send(response, status ?? 200, operation.mediaType, {
      ...(finished && { errors: finished }),
      ...(data !== undefined && { data }),
    });
    return finished === undefined ? 'ok' : 'errors';
  }

  /** Adds what only the request knows to an error that Apollo's `formatError` has already masked. */
  #finish(error: GraphQLFormattedError, requestId: string): GraphQLFormattedError {
    this.#options.metrics.onError(error.extensions?.['code'] as never);
    return { ...error, extensions: { ...error.extensions, requestId } };
  }

  #refuse(response: ServerResponse, error: unknown, requestId: string): void {
    const { suggestions, onBug, metrics } = this.#options;
    if (isBug(error)) onBug(error, requestId);
    const masked = maskError(error, { requestId, suggestions });
    metrics.onError(masked.extensions?.['code'] as never);
    if (response.headersSent || response.destroyed) return;
    const status = error instanceof GatewayError ? (error.httpStatus ?? 400) : 500;
    if (status === 401) response.setHeader('www-authenticate', 'Bearer');
    const { retryAfterSeconds } = masked.extensions as { retryAfterSeconds?: number };
    if (retryAfterSeconds !== undefined) response.setHeader('retry-after', String(retryAfterSeconds));
    // What was not read of the body must not be taken for the next request.
    response.setHeader('connection', 'close');
    send(response, status, 'application/json', { errors: [masked] });
  }

  #fromRouter(request: IncomingMessage): boolean | undefined {
    const { current, previous } = this.#options.routerSecrets();
    if (current === undefined && previous === undefined) return undefined;
    const header = request.headers['x-gateway-router-secret'];
    return typeof header === 'string' && routerSecretMatches(header, current, previous);
  }
}

function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : randomUUID();
}

/** Aborts when the connection ends before the answer was written. */
function leaving(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) controller.abort();
  });
  return controller.signal;
}

function send(response: ServerResponse, status: number, mediaType: MediaType, body: unknown): void {
  const text = JSON.stringify(body);
  const type = mediaType === 'application/graphql-response+json' ? mediaType : 'application/json';
  response.writeHead(status, { 'content-type': `${type}; charset=utf-8`, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function withoutAbsent<T extends object>(parameters: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined)) as never;
}
