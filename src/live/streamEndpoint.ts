import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { holderOf } from '../auth/caller.js';
import { readGraphQLRequest } from '../http/graphqlRequest.js';
import { accepts, readAccept } from '../http/mediaTypes.js';
import { badRequest } from '../operations/GraphQLRequest.js';
import { atTime, forEachAnswer } from '../operations/ResultStream.js';
import { admitStream, type LiveOptions, type Serve } from './admitStream.js';
import { HttpStream, type StreamFormat } from './HttpStream.js';

/** Milliseconds after its caller's token that a stream may take to say that it has expired. */
const lastWordsMs = 1000;

/** One operation, answered by a response that stays open. A client that leaves before it is open costs nothing more. */
export function streamEndpoint(format: StreamFormat, options: LiveOptions): Serve {
  const { pipeline } = options;
  return async (request, response, requestId) => {
    const left = new AbortController();
    response.once('close', () => left.abort());
    if (request.method === 'GET' && !mayBeEventSource(request.headers)) {
      throw badRequest('A GET from a page must be that of an EventSource');
    }
    const identity = await admitStream(request, options);
    if (left.signal.aborted) return; // its body could not be read
    const holder = holderOf(identity.caller);
    // An EventSource can add no header to its GET: the origin and the fetch metadata were checked instead.
    const reading = { ...options, simpleGet: true };
    const asked = await pipeline.admit(identity, () => readGraphQLRequest(request, holder, reading));
    const operation = pipeline.prepare(asked, { ...identity, requestId, signal: left.signal }, format.transport);
    if (left.signal.aborted || request.socket.destroyed) return;
    // Of a pipelined response Node.js would not say when the connection closes.
    if (response.socket === null) throw badRequest('A stream must be the only request on its connection');
    const { by, type } = operation.work;
    if (by !== 'refusal' && type === 'mutation' && asked.method === 'GET') {
      throw badRequest('A mutation must be sent with POST', 405, { allow: 'POST' });
    }
    const isSubscription = by !== 'refusal' && type === 'subscription';
    const stream = new HttpStream({ ...options, response, requestId, format, holder, isSubscription });
    // A subscription ends with its caller's token, even if nothing of it was read.
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
  };
}

/** A GET must name the type, as an EventSource does: for an image browsers send one that accepts anything. @throws GatewayError */
export function refuseUnlessEvents({ method, headers }: IncomingMessage): void {
  const accepted = readAccept(headers.accept);
  if (accepts(accepted, 'text/event-stream') || (method !== 'GET' && accepts(accepted, '*/*'))) return;
  throw badRequest('The Accept header must be text/event-stream', 406);
}

/** Any page can make a browser send a GET without an origin, such as for an image; `Sec-Fetch` headers tell it apart. */
function mayBeEventSource(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-mode': mode = 'cors', 'sec-fetch-dest': destination = 'empty' } = headers;
  return (mode === 'cors' || mode === 'same-origin') && destination === 'empty';
}
