import type { IncomingMessage, ServerResponse } from 'node:http';
import { readGraphQLRequest } from '../graphqlRequest.js';
import type { Accepted } from '../mediaTypes.js';
import { HttpStream, multipartFormat } from './HttpStream.js';
import { admitStream, answering, type LiveEndpointOptions } from './liveRequest.js';
import { pipeResults } from './pipeResults.js';

/** Subscriptions in one multipart response, as Apollo Client asks for them when it has no other link. */
export class MultipartEndpoint {
  readonly #options: LiveEndpointOptions;

  constructor(options: LiveEndpointOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { operations, streams, requestLimits, keepAliveMs } = this.#options;
    return answering({ request, response, operations }, async (requestId) => {
      const identity = await admitStream(request, this.#options);
      const { method: _, ...parameters } = await readGraphQLRequest(request, requestLimits);
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      const facts = { ...identity, requestId, signal: gone.signal };
      const operation = await operations.prepare(parameters, facts, 'multipart');
      const stream = new HttpStream({
        response,
        format: multipartFormat,
        transport: 'multipart',
        streams,
        keepAliveMs,
      });
      await pipeResults({ operations, operation, stream, left: stream.closed });
      stream.end();
    });
  }
}

/** Whether a request asks for a subscription in this form: Apollo's clients do so for subscriptions alone. */
export function wantsMultipart({ ranges }: Accepted): boolean {
  return ranges.some(({ type, parameters }) => type === 'multipart/mixed' && 'subscriptionspec' in parameters);
}
