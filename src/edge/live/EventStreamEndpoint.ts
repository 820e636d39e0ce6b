import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.js';
import { readGraphQLRequest } from '../graphqlRequest.js';
import { type Accepted, accepts, readAccept } from '../mediaTypes.js';
import { mayBeEventSource } from './browserOrigin.js';
import { eventStreamFormat, HttpStream } from './HttpStream.js';
import { admitStream, answering, type LiveEndpointOptions } from './liveRequest.js';
import { pipeResults } from './pipeResults.js';
import { SharedEventStreams, streamTokenOf } from './SharedEventStreams.js';

/** Server-sent events in the protocol `graphql-sse`: a stream per operation, or one that several operations share. */
export class EventStreamEndpoint {
  readonly #options: LiveEndpointOptions;
  readonly #shared: SharedEventStreams;

  constructor(options: LiveEndpointOptions) {
    this.#options = options;
    this.#shared = new SharedEventStreams(options);
  }

  /** `/graphql/stream`. Never rejects. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { operations } = this.#options;
    return answering({ request, response, operations }, async (requestId) => {
      const isForOne = request.method === 'GET' || request.method === 'POST';
      const isShared = !isForOne || streamTokenOf(request) !== undefined;
      if (isShared) await this.#shared.handle(request, response, requestId);
      else if (acceptsEvents(request)) await this.#serveOne(request, response, requestId);
      else throw new GatewayError('BAD_USER_INPUT', 'The Accept header must be text/event-stream', { httpStatus: 406 });
    });
  }

  /** One operation on a stream of its own, on whatever path. Never rejects. */
  handleOne(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { operations } = this.#options;
    return answering({ request, response, operations }, (requestId) => this.#serveOne(request, response, requestId));
  }

  async #serveOne(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const { operations, streams, requestLimits, keepAliveMs } = this.#options;
    if (request.method === 'GET' && !mayBeEventSource(request.headers)) {
      const message = 'A GET from a page must be that of an EventSource';
      throw new GatewayError('BAD_USER_INPUT', message, { httpStatus: 400 });
    }
    const identity = await admitStream(request, this.#options);
    // An EventSource sends a GET and can add no header to it; what it may do is checked by its origin and the method.
    const { method, ...parameters } = await readGraphQLRequest(request, requestLimits, { simpleGet: true });
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const operation = await operations.prepare(parameters, { ...identity, requestId, signal: gone.signal }, 'sse');
    if (method === 'GET' && operation.kind === 'ready' && operation.type === 'mutation') {
      const options = { httpStatus: 405, allow: 'POST' };
      throw new GatewayError('BAD_USER_INPUT', 'A mutation must be sent with POST', options);
    }
    const stream = new HttpStream({ response, format: eventStreamFormat, transport: 'sse', streams, keepAliveMs });
    await pipeResults({ operations, operation, stream, left: stream.closed });
    stream.end();
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
