import type { ServerResponse } from 'node:http';
import type { Holder } from '../admission/Ledger.js';
import type { Answer } from '../operations/Exit.js';
import type { LiveTransport } from '../operations/observeOperations.js';
import { interruption, keepAliveMs, type LiveOptions } from './admitStream.js';

/** How results are written into a response that stays open. */
export interface StreamFormat {
  readonly transport: LiveTransport;
  readonly contentType: string;
  readonly opening: string;
  readonly heartbeat: string;
  /** Written when the process drains, in place of an end that would mean completion. */
  readonly interruption: string;
  /** Around the JSON of an answer. */
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

/** Multipart subscriptions of Apollo Client and Router. A part is received with the boundary after it, so that follows it. */
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

export interface HttpStreamOptions extends LiveOptions {
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly format: StreamFormat;
  readonly holder: Holder;
  /** Whether it is cut when the process drains; any other answer is waited for. */
  readonly isSubscription: boolean;
}

/** A response that stays open for answers. */
export class HttpStream {
  #isOver = false;
  #writing = 0;

  /** Answers with the head of the stream. @throws GatewayError RATE_LIMITED when the caller has no place for one more */
  constructor(private readonly options: HttpStreamOptions) {
    const { response, requestId, format, streams, ledger, holder, isSubscription } = options;
    const leavePlace = ledger.take('streams', holder);
    response.writeHead(200, [
      ...['x-request-id', requestId, 'cache-control', 'no-store'],
      ...['content-type', format.contentType, 'x-accel-buffering', 'no'],
    ]);
    void this.#write(format.opening);
    const timer = setInterval(() => {
      // A peer that does not read must not be sent more.
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
    const { format, pipeline, holder } = this.options;
    const beganAt = performance.now();
    const writing = this.#write(format.answer(text));
    pipeline.noteWork(holder, beganAt);
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

  /** Resolves when the system has taken all of it, or the stream is over. */
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
