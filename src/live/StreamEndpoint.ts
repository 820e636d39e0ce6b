import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { holderOf } from '../auth/caller.js';
import { requestIdOf, writeRefusal } from '../http/answering.js';
import { readGraphQLRequest } from '../http/graphqlRequest.js';
import { accepts, readAccept } from '../http/mediaTypes.js';
import { badRequest } from '../operations/GraphQLRequest.js';
import { atTime, forEachAnswer } from '../operations/ResultStream.js';
import { admitStream, type LiveOptions } from './admitStream.js';
import { HttpStream, type StreamFormat } from './HttpStream.js';

/** How long after its caller's token a stream may take to say that it has expired, in milliseconds. */
const lastWordsMs = 1000;

/** One operation, answered by a response that stays open in the format given. */
export class StreamEndpoint {
  readonly #format: StreamFormat;
  readonly #options: LiveOptions;
  readonly #isAcceptable: (request: IncomingMessage) => boolean;

  constructor(format: StreamFormat, options: LiveOptions, isAcceptable = (_: IncomingMessage) => true) {
    this.#format = format;
    this.#options = options;
    this.#isAcceptable = isAcceptable;
  }

  /** Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = requestIdOf(request);
    try {
      await this.#serve(request, response, requestId);
    } catch (error) {
      const refusal = this.#options.pipeline.refuse(error, { requestId }, this.#format.transport);
      writeRefusal(response, requestId, refusal);
    }
  }

  /** A client that leaves before the stream is open costs nothing more. */
  async #serve(request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> {
    const { pipeline } = this.#options;
    const left = new AbortController();
    response.once('close', () => left.abort());
    if (!this.#isAcceptable(request)) throw badRequest('The Accept header must be text/event-stream', 406);
    if (request.method === 'GET' && !mayBeEventSource(request.headers)) {
      throw badRequest('A GET from a page must be that of an EventSource');
    }
    const identity = await admitStream(request, this.#options);
    if (left.signal.aborted) return; // nothing would be read of its body
    const holder = holderOf(identity.caller);
    // An EventSource sends a GET and can add no header to it: it was told by its origin and its fetch metadata.
    const reading = { ...this.#options, simpleGet: true };
    const asked = await pipeline.admit(identity, () => readGraphQLRequest(request, holder, reading));
    const facts = { ...identity, requestId, signal: left.signal };
    const operation = pipeline.prepare(asked, facts, this.#format.transport);
    if (left.signal.aborted || request.socket.destroyed) return;
    // Its turn has not come, and Node.js would not say when the connection closes before it does.
    if (response.socket === null) throw badRequest('A stream must be the only request on its connection');
    const { by, type } = operation.work;
    if (by !== 'refusal' && type === 'mutation' && asked.method === 'GET') {
      throw badRequest('A mutation must be sent with POST', 405, { allow: 'POST' });
    }
    const isSubscription = by !== 'refusal' && type === 'subscription';
    const stream = new HttpStream({
      ...this.#options,
      response,
      requestId,
      format: this.#format,
      holder,
      isSubscription,
    });
    // However little of it was read: a subscription ends with its caller's token.
    const expiresAt = isSubscription ? identity.caller.expiresAt + lastWordsMs : Number.POSITIVE_INFINITY;
    const forget = atTime(expiresAt, () => response.destroy());
    try {
      const result = await pipeline.runLive(operation);
      await forEachAnswer(result, left.signal, (answer) => stream.write(answer));
      if (!left.signal.aborted) await stream.complete();
    } finally {
      forget();
    }
    stream.end();
  }
}

/** A GET has to name the type, as an EventSource does: browsers accept anything for an image, whose GET they send unasked. */
export function acceptsEvents({ method, headers }: IncomingMessage): boolean {
  const accepted = readAccept(headers.accept);
  return accepts(accepted, 'text/event-stream') || (method !== 'GET' && accepts(accepted, '*/*'));
}

/** Any page can make a browser send a GET without an origin, such as for an image; `Sec-Fetch` headers tell it apart. */
function mayBeEventSource(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-mode': mode = 'cors', 'sec-fetch-dest': destination = 'empty' } = headers;
  return (mode === 'cors' || mode === 'same-origin') && destination === 'empty';
}
