import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Accepted } from '../http/mediaTypes.js';
import { multipartFormat } from './HttpStream.js';
import { answering, type LiveEndpointOptions } from './liveRequest.js';
import { serveStream } from './serveStream.js';

/** Subscriptions in one multipart response, as Apollo Client asks for them when it has no other link. */
export class MultipartEndpoint {
  readonly #options: LiveEndpointOptions;

  constructor(options: LiveEndpointOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { operations } = this.#options;
    return answering({ request, response, operations }, (requestId) => {
      const streamed = { request, response, requestId, format: multipartFormat, transport: 'multipart' } as const;
      return serveStream(streamed, this.#options);
    });
  }
}

/** Whether a request asks for a subscription in this form: Apollo's clients do so for subscriptions alone. */
export function wantsMultipart({ ranges }: Accepted): boolean {
  return ranges.some(({ type, parameters }) => type === 'multipart/mixed' && 'subscriptionspec' in parameters);
}
