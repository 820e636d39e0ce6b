import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Ledger } from '../admission/Ledger.js';
import { holderOf } from '../auth/caller.js';
import { credentialsOf, type Identify } from '../auth/identify.js';
import type { Answer } from '../operations/Exit.js';
import type { Pipeline } from '../operations/Pipeline.js';
import { HttpFacts, requestIdOf, writeRefusal } from './answering.js';
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
  readonly #options: GraphQLEndpointOptions;

  constructor(options: GraphQLEndpointOptions) {
    this.#options = options;
  }

  /** Never rejects: whatever happens becomes an answer in GraphQL's form. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pipeline, identify, unread } = this.#options;
    const startedAt = performance.now();
    const requestId = requestIdOf(request);
    try {
      const mediaType = mediaTypeFor(request.headers.accept);
      const identifying = identify(credentialsOf(request));
      const identity = identifying instanceof Promise ? await identifying : identifying;
      const holder = holderOf(identity.caller);
      const asked = await pipeline.admit(identity, () => readGraphQLRequest(request, holder, this.#options));
      const operation = pipeline.prepare(asked, new HttpFacts(identity, requestId, startedAt, response), 'http');
      const running = pipeline.run(operation);
      const answer = running instanceof Promise ? await running : running;
      this.#send(response, requestId, mediaType, answer);
      unread.holdAnswer(response, holder);
    } catch (error) {
      writeRefusal(response, requestId, pipeline.refuse(error, { requestId, startedAt }, 'http'));
    }
  }

  #send(
    response: ServerResponse,
    requestId: string,
    mediaType: MediaType,
    { status, allow, text, bytes, isRefusal }: Answer,
  ): void {
    const isFull = mediaType === 'application/graphql-response+json';
    const headers = [
      ...['x-request-id', requestId, 'cache-control', 'no-store', 'content-type'],
      isFull ? 'application/graphql-response+json; charset=utf-8' : 'application/json; charset=utf-8',
      ...['content-length', `${bytes}`],
    ];
    if (allow !== undefined) headers.push('allow', allow);
    response.writeHead(isRefusal && mediaType === 'application/json, refusals as 200' ? 200 : status, headers);
    // Text without a character beyond ASCII is the same in both encodings, and written faster in this one.
    response.end(text, bytes === text.length ? 'latin1' : 'utf8');
  }
}
