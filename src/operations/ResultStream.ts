import { tokenExpired } from '../auth/verifyToken.js';
import { GatewayError } from '../errors/errors.js';
import { atTime } from '../process/pause.js';
import type { Answer } from './Operation.js';

export interface ResultStreamOptions {
  /** When the caller's token expires, in epoch milliseconds. */
  readonly expiresAt: number;
  readonly execute: (event: unknown) => Promise<Answer>;
  /** The last answer of a stream that failed. */
  readonly failed: (error: unknown) => Answer;
  /** Called once, however the stream ends. */
  readonly onEnd?: () => void;
}

const ended = { value: undefined, done: true } as const;

/**
 * The answers of a subscription, one per event. Ends when its source ends, on `return()`, or when the caller's token expires;
 * never rejects. Backpressure: it reads its source only when it is read itself, so a slow reader builds no queue.
 */
export class ResultStream implements AsyncIterableIterator<Answer> {
  readonly #forget: () => void;
  #expire: (() => void) | undefined;
  #ended = false;

  constructor(
    private readonly source: AsyncIterator<unknown>,
    private readonly options: ResultStreamOptions,
  ) {
    this.#forget = atTime(options.expiresAt, () => {
      this.#expire?.();
      void source.return?.(); // also when nobody reads: the source must not run on for an expired token
    });
  }

  async next(): Promise<IteratorResult<Answer>> {
    if (this.#ended) return ended;
    const expired = new Promise<void>((resolve) => {
      this.#expire = resolve;
    });
    try {
      const answer = await Promise.race([this.#nextAnswer(), expired]);
      if (this.#ended) return ended;
      if (Date.now() >= this.options.expiresAt) throw new GatewayError('UNAUTHENTICATED', tokenExpired);
      if (answer) return { value: answer, done: false };
      this.#end();
      return ended;
    } catch (error) {
      const value = this.options.failed(error);
      await this.return();
      return { value, done: false };
    }
  }

  async return(): Promise<IteratorResult<Answer>> {
    if (!this.#ended) {
      this.#end();
      void this.source.return?.();
    }
    return ended;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The answer to the next event; undefined when the source has ended or the token has expired. */
  async #nextAnswer(): Promise<Answer | undefined> {
    if (Date.now() >= this.options.expiresAt) return undefined;
    const event = await this.source.next();
    return event.done ? undefined : this.options.execute(event.value);
  }

  #end(): void {
    this.#ended = true;
    this.#forget();
    this.options.onEnd?.();
  }
}
