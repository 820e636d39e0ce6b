import type { ServerResponse } from 'node:http';
import type { ExecutionResult } from 'graphql';
import type { LiveTransport } from './LiveOperations.js';
import type { OpenStreams } from './OpenStreams.js';

/** How results are written into a response that stays open. */
export interface StreamFormat {
  readonly contentType: string;
  readonly opening: string;
  readonly heartbeat: string;
  /** Written when the process drains, in place of an end that would mean completion. */
  readonly interruption: string;
  result(result: ExecutionResult, id?: string): string;
  complete(id?: string): string;
}

/** `graphql-sse`, in both of its modes: with an id in the one where operations share a stream. */
export const eventStreamFormat: StreamFormat = {
  contentType: 'text/event-stream; charset=utf-8',
  opening: ':\n\n', // some browsers wait for a first byte
  heartbeat: ':\n\n',
  interruption: ': shutting down\n\n',
  result: (result, id) =>
    `event: next\ndata: ${JSON.stringify(id === undefined ? result : { id, payload: result })}\n\n`,
  complete: (id) => `event: complete\ndata: ${id === undefined ? '' : JSON.stringify({ id })}\n\n`,
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
  complete: () => '--\r\n',
};

function part(body: unknown): string {
  return `\r\ncontent-type: application/json\r\n\r\n${JSON.stringify(body)}\r\n--graphql`;
}

export interface HttpStreamOptions {
  readonly response: ServerResponse;
  readonly format: StreamFormat;
  readonly transport: LiveTransport;
  readonly streams: OpenStreams;
  readonly keepAliveMs: number;
}

/** A response that stays open for results. */
export class HttpStream {
  /** Aborts when the stream is over, whoever ended it. */
  readonly closed: AbortSignal;
  readonly #options: HttpStreamOptions;
  #isOver = false;
  #holds = 0;
  #isInterrupted = false;

  /** Answers with the head of the stream. */
  constructor(options: HttpStreamOptions) {
    const { response, format, transport, streams, keepAliveMs } = options;
    this.#options = options;
    const closed = new AbortController();
    this.closed = closed.signal;
    response.writeHead(200, { 'content-type': format.contentType, 'x-accel-buffering': 'no' });
    response.write(format.opening);
    const timer = setInterval(() => {
      // A peer that does not read must not be sent more.
      if (!response.writableNeedDrain) response.write(format.heartbeat);
    }, keepAliveMs);
    const remove = streams.add(transport, {
      shutDown: () => {
        this.#isInterrupted = true;
        this.#interruptWhenFree();
      },
      destroy: () => response.destroy(),
    });
    response.once('close', () => {
      this.#isOver = true;
      clearInterval(timer);
      remove();
      closed.abort();
    });
  }

  /** Writes a result; resolves when the peer can take another. */
  async result(result: ExecutionResult, id?: string): Promise<void> {
    await this.#write(this.#options.format.result(result, id));
  }

  /** Writes that an operation is complete. */
  async complete(id?: string): Promise<void> {
    await this.#write(this.#options.format.complete(id));
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

  #interruptWhenFree(): void {
    if (this.#isInterrupted && this.#holds === 0) this.#end(this.#options.format.interruption);
  }

  #end(lastWords: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.response.end(lastWords);
  }

  async #write(text: string): Promise<void> {
    const { response } = this.#options;
    if (this.#isOver || response.write(text)) return;
    await new Promise<void>((resolve) => {
      const go = () => {
        response.off('drain', go).off('close', go);
        resolve();
      };
      response.on('drain', go).on('close', go);
    });
  }
}
