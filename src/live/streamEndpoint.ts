import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Holder } from '../admission/Places.js';
import { holderOf } from '../auth/caller.js';
import { credentialsOf, type Identity } from '../auth/identify.js';
import { rateLimitHeaders } from '../http/answering.js';
import { readGraphQLRequest } from '../http/graphqlRequest.js';
import { readAccept } from '../http/mediaTypes.js';
import type { Answer } from '../operations/answer.js';
import { badRequest, type GraphQLRequest } from '../operations/GraphQLRequest.js';
import type { OperationFacts } from '../operations/OperationContext.js';
import type { LiveTransport } from '../operations/OperationRecord.js';
import { forEachAnswer } from '../operations/ResultStream.js';
import { atTime } from '../process/atTime.js';
import { interruption, shuttingDown } from './draining.js';
import { defaultKeepAliveMs } from './keepAlive.js';
import type { LiveOptions } from './LiveOptions.js';
import { refusalOfStream } from './refusalOfStream.js';

/** A request that stays open, and what is known about it so far. */
export interface Visit {
  readonly known: Pick<OperationFacts, 'requestId' | 'startedAt' | 'client' | 'peer'>;
  identity?: Identity;
  /** Its operation, if it was already read. */
  readonly asked?: GraphQLRequest;
}

/** How results are written into a response that stays open. */
export interface StreamFormat {
  readonly transport: LiveTransport;
  readonly contentType: string;
  readonly opening: string;
  readonly heartbeat: string;
  /** Written when the process drains, instead of `completion`: the subscription has not ended. */
  readonly interruption: string;
  /** Wraps the JSON of an answer. */
  readonly answer: (json: string) => string;
  readonly completion: string;
}

/** `graphql-sse`, in its distinct connections mode. */
export const eventStreamFormat: StreamFormat = {
  transport: 'sse',
  contentType: 'text/event-stream; charset=utf-8',
  opening: ':\n\n', // some browsers wait for a first byte
  heartbeat: ':\n\n',
  interruption: ': shutting down\n\n',
  answer: (json) => `event: next\ndata: ${json}\n\n`,
  completion: 'event: complete\ndata: \n\n',
};

/** Multipart subscriptions of Apollo Client and Router. They read a part up to the next boundary, so parts end with one. */
export const multipartFormat: StreamFormat = {
  transport: 'multipart',
  contentType: 'multipart/mixed;boundary="graphql";subscriptionSpec="1.0"',
  opening: '\r\n--graphql',
  heartbeat: part('{}'),
  interruption: `${part(JSON.stringify({ payload: null, errors: [interruption] }))}--\r\n`,
  answer: (json) => part(`{"payload":${json}}`),
  completion: '--\r\n',
};

function part(json: string): string {
  return `\r\ncontent-type: application/json\r\n\r\n${json}\r\n--graphql`;
}

/** Milliseconds after its caller's token expires that a stream may take to say so. */
const lastWordsMs = 1000;

/**
 * Answers one operation with a response that stays open. A client that leaves before it opens costs nothing more.
 * @throws GatewayError when it is refused
 */
export function streamEndpoint(format: StreamFormat, options: LiveOptions) {
  const { operations, places } = options;
  return async (request: IncomingMessage, response: ServerResponse, visit: Visit): Promise<void> => {
    const left = new AbortController();
    response.once('close', () => left.abort());
    if (request.method === 'GET' && !mayBeEventSource(request.headers)) {
      throw badRequest('A GET from a page must be that of an EventSource', 400);
    }
    const refusal = refusalOfStream(request, options);
    if (refusal !== undefined) throw refusal;
    const identity = visit.identity ?? (await options.identify(credentialsOf(request)));
    visit.identity = identity;
    const holder = holderOf(identity.caller);
    const noPlace = places.refusalOf('streams', holder);
    if (noPlace !== undefined) throw noPlace;
    if (left.signal.aborted) return; // the client has left: its body cannot be read
    // An EventSource can add no header to its GET: the origin and the fetch metadata were checked instead.
    const reading = { ...options, simpleGet: true };
    const read = () => readGraphQLRequest(request, holder, reading);
    const asked = visit.asked ?? (await operations.admit(identity, read));
    const operation = operations.prepare(asked, { ...identity, ...visit.known, signal: left.signal }, format.transport);
    if (left.signal.aborted || request.socket.destroyed) return;
    // Node.js would not tell a pipelined response that the connection has closed.
    if (response.socket === null) throw badRequest('A stream must be the only request on its connection', 400);
    const { type, work } = operation;
    if (work.way !== undefined && type === 'mutation' && asked.method === 'GET') {
      throw badRequest('A mutation must be sent with POST', 405, { allow: 'POST' });
    }
    const isSubscription = work.way === 'events';
    // The process may have begun to drain since admission: the stream would end at once, and look complete.
    if (isSubscription && options.streams.draining) throw shuttingDown;
    const stream = new HttpStream({ ...options, response, identity, visit, format, holder, isSubscription });
    // A subscription ends when its caller's token expires, even if the client has read nothing.
    const expiresAt = isSubscription ? identity.caller.expiresAt + lastWordsMs : Number.POSITIVE_INFINITY;
    const forget = atTime(expiresAt, () => response.destroy());
    try {
      const result = await operations.runLive(operation);
      await forEachAnswer(result, left.signal, (answer) => stream.write(answer));
      if (!left.signal.aborted) await stream.complete();
    } finally {
      forget();
    }
    stream.end();
  };
}

/** A GET must name the type, as an EventSource does: a browser's GET for an image accepts anything. @throws GatewayError */
export function refuseUnlessEvents({ method, headers }: IncomingMessage): void {
  const { streams, takesEvents } = readAccept(headers.accept);
  if (method === 'GET' ? streams.includes('events') : takesEvents) return;
  throw badRequest('The Accept header must be text/event-stream', 406);
}

/** Any page can make a browser send a GET without an origin, such as for an image; `Sec-Fetch` headers reveal it. */
function mayBeEventSource(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-mode': mode = 'cors', 'sec-fetch-dest': destination = 'empty' } = headers;
  return (mode === 'cors' || mode === 'same-origin') && destination === 'empty';
}

interface HttpStreamOptions extends LiveOptions {
  readonly response: ServerResponse;
  readonly identity: Identity;
  readonly visit: Visit;
  readonly format: StreamFormat;
  readonly holder: Holder;
  /** When the process drains, a subscription is cut; any other operation may finish. */
  readonly isSubscription: boolean;
}

/** A response that stays open for answers. */
class HttpStream {
  #isOver = false;
  #writing = 0;

  /** Answers with the head of the stream. @throws GatewayError RATE_LIMITED when the caller has no place for one more */
  constructor(private readonly options: HttpStreamOptions) {
    const { response, identity, visit, format, operations, streams, places, holder, isSubscription } = options;
    const { keepAliveMs = defaultKeepAliveMs } = options;
    const leavePlace = places.take('streams', holder);
    const rateLimit = operations.rateLimitOf(identity);
    response.writeHead(200, [
      ...['x-request-id', visit.known.requestId, 'cache-control', 'no-store'],
      ...(rateLimit ? rateLimitHeaders(rateLimit) : []),
      ...['content-type', format.contentType, 'x-accel-buffering', 'no'],
    ]);
    void this.#write(format.opening);
    const timer = setInterval(() => {
      // No heartbeat while the peer has not read the last write.
      if (this.#writing === 0) void this.#write(format.heartbeat);
    }, keepAliveMs);
    const shutDown = () => (isSubscription ? this.end(format.interruption) : undefined);
    const remove = streams.add(format.transport, { shutDown, destroy: () => response.destroy() });
    response.once('close', () => {
      this.#isOver = true;
      clearInterval(timer);
      remove();
      leavePlace();
    });
  }

  /** Writes an answer; resolves when the peer can take another. */
  async write({ text }: Answer): Promise<void> {
    const { format, operations, holder } = this.options;
    const beganAt = performance.now();
    const writing = this.#write(format.answer(text));
    operations.noteWork(holder, beganAt);
    await writing;
  }

  complete(): Promise<void> {
    return this.#write(this.options.format.completion);
  }

  end(lastWords = ''): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { response, unread, holder } = this.options;
    response.end(lastWords);
    if (this.#writing === 0) unread.holdAnswer(response, holder);
  }

  /** Resolves when the system has taken all of `text`, or the stream is over. */
  async #write(text: string): Promise<void> {
    const { response, unread, holder } = this.options;
    if (this.#isOver) return;
    const release = unread.hold(response.req.socket, holder, Buffer.byteLength(text));
    if (release === undefined) return;
    this.#writing += 1;
    await new Promise<void>((resolve) => {
      response.once('close', resolve);
      response.write(text, () => {
        response.off('close', resolve);
        resolve();
      });
    });
    this.#writing -= 1;
    release();
  }
}
