import type { ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import type { Holder } from '../admission/Ledger.js';
import type { LiveOperations, LiveTransport } from '../operations/LiveOperations.js';
import type { LiveEndpointOptions } from './liveRequest.js';

/** How results are written into a response that stays open. */
export interface StreamFormat {
  readonly contentType: string;
  readonly opening: string;
  readonly heartbeat: string;
  /** Written when the process drains, in place of an end that would mean completion. */
  readonly interruption: string;
  result(result: ExecutionResult): string;
  readonly completion: string;
}

/** `graphql-sse`, in its distinct connections mode. */
export const eventStreamFormat: StreamFormat = {
  contentType: 'text/event-stream; charset=utf-8',
  opening: ':\n\n', // some browsers wait for a first byte
  heartbeat: ':\n\n',
  interruption: ': shutting down\n\n',
  result: (result) => `event: next\ndata: ${JSON.stringify(result)}\n\n`,
  completion: 'event: complete\ndata: \n\n',
};

/**
 * Multipart subscriptions as Apollo Client and Apollo Router read them. A part counts as received when the boundary after
 * it is, so each is written with the boundary that follows.
 */
export const multipartFormat: StreamFormat = {
  contentType: 'multipart/mixed;boundary="graphql";subscriptionSpec="1.0"',
  opening: '\r\n--graphql',
  heartbeat: part({}),
  interruption: `${part({ payload: null, errors: [{ message: 'The gateway is shutting down' }] })}--\r\n`,
  result: (result) => part({ payload: result }),
  completion: '--\r\n',
};

function part(body: unknown): string {
  return `\r\ncontent-type: application/json\r\n\r\n${JSON.stringify(body)}\r\n--graphql`;
}

export interface HttpStreamOptions extends Pick<LiveEndpointOptions, 'streams' | 'ledger' | 'unread' | 'keepAliveMs'> {
  /** One that somebody still waits for. */
  readonly response: ServerResponse;
  readonly format: StreamFormat;
  readonly transport: LiveTransport;
  readonly holder: Holder;
  /** Told how long writing takes. */
  readonly operations: Pick<LiveOperations, 'noteWork'>;
}

/** A response that stays open for results. */
export class HttpStream {
  /** Aborts when the stream is over, whoever ended it. */
  readonly closed: AbortSignal;
  readonly #options: HttpStreamOptions;
  #isOver = false;
  #writing = 0;
  #holds = 0;
  #isInterrupted = false;

  /** Answers with the head of the stream. @throws GatewayError RATE_LIMITED when the caller has no place for one more */
  constructor(options: HttpStreamOptions) {
    const { response, format, transport, streams, ledger, holder, keepAliveMs } = options;
    const leavePlace = ledger.take('streams', holder);
    this.#options = options;
    const closed = new AbortController();
    this.closed = closed.signal;
    response.writeHead(200, { 'content-type': format.contentType, 'x-accel-buffering': 'no' });
    void this.#write(format.opening);
    const timer = setInterval(() => {
      // A peer that does not read must not be sent more.
      if (this.#writing === 0) void this.#write(format.heartbeat);
    }, keepAliveMs);
    const remove = streams.add(transport, {
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
      closed.abort();
    });
  }

  /** Writes a result; resolves when the peer can take another. */
  async result(result: ExecutionResult): Promise<void> {
    const { format, operations, holder } = this.#options;
    const beganAt = performance.now();
    const writing = this.#write(format.result(result));
    operations.noteWork(holder, beganAt);
    await writing;
  }

  /** Writes that the operation is complete. */
  async complete(): Promise<void> {
    await this.#write(this.#options.format.completion);
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
