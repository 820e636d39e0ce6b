import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Ledger } from '../admission/Ledger.js';
import { type Caller, holderOf } from '../auth/caller.js';
import { credentialsOf, type Identify, type Identity } from '../auth/identify.js';
import { type Client, clientOf } from '../operations/clientName.js';
import type { Answer } from '../operations/Exit.js';
import type { OperationFacts } from '../operations/OperationContext.js';
import type { Pipeline } from '../operations/Pipeline.js';
import { type RateLimit, rateLimitHeaders, requestIdOf, writeRefusal } from './answering.js';
import { readGraphQLRequest } from './graphqlRequest.js';
import { type MediaType, mediaTypeFor } from './mediaTypes.js';
import type { Unread } from './unread.js';

export interface GraphQLEndpointOptions {
  readonly pipeline: Pipeline;
  readonly identify: Identify;
  readonly ledger: Ledger;
  readonly unread: Unread;
}

/** `/graphql` over HTTP: one request, one answer in the form that its caller accepts. */
export class GraphQLEndpoint {
  constructor(private readonly options: GraphQLEndpointOptions) {}

  /** Never rejects: every failure becomes an answer in GraphQL's form. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pipeline, identify, unread } = this.options;
    const startedAt = performance.now();
    const requestId = requestIdOf(request);
    let identity: Identity | undefined;
    try {
      const mediaType = mediaTypeFor(request.headers.accept);
      const identifying = identify(credentialsOf(request));
      identity = identifying instanceof Promise ? await identifying : identifying;
      const { caller, fromRouter } = identity;
      const holder = holderOf(caller);
      const asked = await pipeline.admit(identity, () => readGraphQLRequest(request, holder, this.options));
      const facts = new HttpFacts(caller, fromRouter, requestId, startedAt, response);
      const running = pipeline.run(pipeline.prepare(asked, facts, 'http'));
      const answer = running instanceof Promise ? await running : running;
      writeAnswer(response, requestId, mediaType, answer, pipeline.rateLimitOf(identity));
      unread.holdAnswer(response, holder);
    } catch (error) {
      const known = { ...identity, requestId, startedAt, client: clientOf(request.headers) };
      const refusal = pipeline.refuse(error, known, 'http');
      writeRefusal(response, requestId, refusal, identity && pipeline.rateLimitOf(identity));
    }
  }
}

/** The facts of a plain HTTP request. Its signal is made when first asked for, which only a long wait does. */
class HttpFacts implements OperationFacts {
  #signal: AbortSignal | undefined;

  constructor(
    readonly caller: Caller,
    readonly fromRouter: boolean | undefined,
    readonly requestId: string,
    readonly startedAt: number,
    private readonly response: ServerResponse,
  ) {}

  get client(): Client {
    return clientOf(this.response.req.headers);
  }

  /** Aborts when the connection ends before the answer was written. */
  get signal(): AbortSignal {
    if (this.#signal !== undefined) return this.#signal;
    const controller = new AbortController();
    this.#signal = controller.signal;
    if (this.response.destroyed) controller.abort();
    this.response.once('close', () => {
      if (!this.response.writableFinished) controller.abort();
    });
    return controller.signal;
  }
}

function writeAnswer(
  response: ServerResponse,
  requestId: string,
  mediaType: MediaType,
  answer: Answer,
  rateLimit: RateLimit | undefined,
): void {
  const { status, allow, text, bytes, isRefusal } = answer;
  const isFull = mediaType === 'application/graphql-response+json';
  const headers = [
    ...['x-request-id', requestId, 'cache-control', 'no-store', 'content-type'],
    isFull ? 'application/graphql-response+json; charset=utf-8' : 'application/json; charset=utf-8',
    ...['content-length', `${bytes}`],
  ];
  if (allow !== undefined) headers.push('allow', allow);
  if (rateLimit !== undefined) headers.push(...rateLimitHeaders(rateLimit));
  response.writeHead(isRefusal && mediaType === 'application/json, refusals as 200' ? 200 : status, headers);
  // Text without a character beyond ASCII is the same in both encodings, and written faster in this one.
  response.end(text, bytes === text.length ? 'latin1' : 'utf8');
}
