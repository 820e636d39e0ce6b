import type { ServerResponse } from 'node:http';
import type { Holder } from '../admission/Ledger.js';
import type { Answer } from '../operations/Exit.js';
import type { LiveTransport } from '../operations/observeOperations.js';
import { interruption, type LiveOptions } from './admitStream.js';

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

/**
 * Multipart subscriptions as Apollo Client and Apollo Router read them. A part counts as received when the boundary after
 * it is, so each is written with the boundary that follows.
 */
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

type Shared = Pick<LiveOptions, 'pipeline' | 'streams' | 'ledger' | 'unread' | 'keepAliveMs'>;

export interface HttpStreamOptions extends Shared {
  /** One that somebody still waits for. */
  readonly response: ServerResponse;
  readonly requestId: string;
  readonly format: StreamFormat;
  readonly holder: Holder;
}

/** A response that stays open for answers. */
export class HttpStream {
  readonly #options: HttpStreamOptions;
  #isOver = false;
  #writing = 0;
  #holds = 0;
  #isInterrupted = false;

  /** Answers with the head of the stream. @throws GatewayError RATE_LIMITED when the caller has no place for one more */
  constructor(options: HttpStreamOptions) {
    const { response, requestId, format, streams, ledger, holder, keepAliveMs } = options;
    const leavePlace = ledger.take('streams', holder);
    this.#options = options;
    response.writeHead(200, [
      ...['x-request-id', requestId, 'cache-control', 'no-store'],
      ...['content-type', format.contentType, 'x-accel-buffering', 'no'],
    ]);
    void this.#write(format.opening);
    const timer = setInterval(() => {
      // A peer that does not read must not be sent more.
      if (this.#writing === 0) void this.#write(format.heartbeat);
    }, keepAliveMs);
    const remove = streams.add(format.transport, {
      shutDown: () => {
        this.#isInterrupted = true;
        this.#interruptWhenFree();
      },
      destroy: () => this.destroy(),
    });
    response.once('close', () => {
      this.#isOver = true;
      clearInterval(timer);
      remove();
      leavePlace();
    });
  }

  /** Writes an answer; resolves when the peer can take another. */
  async write({ text }: Answer): Promise<void> {
    const { format, pipeline, holder } = this.#options;
    const beganAt = performance.now();
    const writing = this.#write(format.answer(text));
    pipeline.noteWork(holder, beganAt);
    await writing;
  }

  /** Writes that the operation is complete. */
  complete(): Promise<void> {
    return this.#write(this.#options.format.completion);
  }

  /** Keeps the stream open while the process drains, for an answer that is under way; returns what lets it go. */
  hold(): () => void {
    this.#holds += 1;
    return () => {
      this.#holds -= 1;
      this.#interruptWhenFree();
    };
  }

  end(): void {
    this.#end('');
  }

  /** Ends at once, whatever was not read yet. */
  destroy(): void {
    this.#options.response.destroy();
  }

  #interruptWhenFree(): void {
    if (this.#isInterrupted && this.#holds === 0) this.#end(this.#options.format.interruption);
  }

  #end(lastWords: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { response, unread, holder } = this.#options;
    response.end(lastWords);
    if (this.#writing === 0) unread.holdAnswer(response, holder);
  }

  /** Resolves when the system has taken all of it, or the stream is over. */
  async #write(text: string): Promise<void> {
    const { response, unread, holder } = this.#options;
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
