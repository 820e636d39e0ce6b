import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../errors/errors.js';
import { type Accepted, accepts, readAccept } from '../http/mediaTypes.js';
import { mayBeEventSource } from './browserOrigin.js';
import { eventStreamFormat } from './HttpStream.js';
import { answering, type LiveEndpointOptions } from './liveRequest.js';
import { serveStream } from './serveStream.js';

/** Server-sent events in the protocol `graphql-sse`, a stream per operation. */
export class EventStreamEndpoint {
  readonly #options: LiveEndpointOptions;

  constructor(options: LiveEndpointOptions) {
    this.#options = options;
  }

  /** `/graphql/stream`, which answers with events alone. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.#answer(request, response, () => {
      if (acceptsEvents(request)) return;
      throw new GatewayError('BAD_USER_INPUT', 'The Accept header must be text/event-stream', { httpStatus: 406 });
    });
  }

  /** On whatever path. Never rejects. */
  handleOne(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.#answer(request, response, () => {});
  }

  #answer(request: IncomingMessage, response: ServerResponse, check: () => void): Promise<void> {
    const { operations } = this.#options;
    return answering({ request, response, operations }, (requestId) => {
      check();
      if (request.method === 'GET' && !mayBeEventSource(request.headers)) {
        const message = 'A GET from a page must be that of an EventSource';
        throw new GatewayError('BAD_USER_INPUT', message, { httpStatus: 400 });
      }
      // An EventSource sends a GET and can add no header to it; what it may do is checked by its origin and the method.
      const read = { simpleGet: true };
      const streamed = { request, response, requestId, format: eventStreamFormat, transport: 'sse', read } as const;
      return serveStream(streamed, this.#options);
    });
  }
}

/** Whether the caller wants events and nothing else: a header that names JSON as well is one for every occasion. */
export function wantsEvents(accepted: Accepted): boolean {
  const isForEveryOccasion = accepted.ranges.some(({ type }) => type === '*/*' || type.includes('json'));
  return accepts(accepted, 'text/event-stream') && !isForEveryOccasion;
}

/** A GET has to name the type, as an EventSource does: browsers accept anything for an image, and send its GET unasked. */
function acceptsEvents({ method, headers }: IncomingMessage): boolean {
  const accepted = readAccept(headers.accept);
  return accepts(accepted, 'text/event-stream') || (method !== 'GET' && accepts(accepted, '*/*'));
}
