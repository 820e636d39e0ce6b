import type { ExecutionResult } from 'graphql';
import { tokenExpired } from '../auth/verifyToken.js';
import { GatewayError } from '../errors/errors.js';
import { atTime } from './atTime.js';

export interface ResultStreamOptions {
  /** Executes the operation on an event; the result is in the form in which it leaves. */
  readonly execute: (event: unknown) => Promise<ExecutionResult>;
  /** The last result of a stream that failed. */
  readonly failed: (error: unknown) => ExecutionResult;
}

/**
 * The results of a subscription in the form in which they leave, one for each event of its source. Ends with its source, when it is left, or when the
 * caller's token expires; never rejects. Reads the source only when it is read itself, so a slow reader makes no queue.
 */
export class ResultStream implements AsyncIterableIterator<ExecutionResult> {
  readonly #source: AsyncIterator<unknown>;
  readonly #options: ResultStreamOptions;
  readonly #expiresAt: number;
  readonly #forget: () => void;
  #expire: (() => void) | undefined;
  #ended = false;

  constructor(source: AsyncIterator<unknown>, expiresAt: number, options: ResultStreamOptions) {
    this.#source = source;
    this.#options = options;
    this.#expiresAt = expiresAt;
    this.#forget = atTime(expiresAt, () => {
      this.#expire?.();
      // Nobody reads now: the source is not to run on for somebody who may not see it any more.
      void this.#source.return?.();
    });
  }

  async next(): Promise<IteratorResult<ExecutionResult>> {
    if (this.#ended) return { value: undefined, done: true };
    if (Date.now() >= this.#expiresAt) return this.#fail(unauthenticated());
    const expired = new Promise<'expired'>((resolve) => {
      this.#expire = () => resolve('expired');
    });
    try {
      const result = await Promise.race([this.#nextResult(), expired]);
      if (this.#ended) return { value: undefined, done: true };
      if (result === 'expired' || Date.now() >= this.#expiresAt) return this.#fail(unauthenticated());
      if (result !== 'the source has ended') return { value: result, done: false };
      this.#end();
      return { value: undefined, done: true };
    } catch (error) {
      return this.#fail(error);
    }
  }

  async #nextResult(): Promise<ExecutionResult | 'the source has ended'> {
    const event = await this.#source.next();
    return event.done ? 'the source has ended' : this.#options.execute(event.value);
  }

  async return(): Promise<IteratorResult<ExecutionResult>> {
    if (!this.#ended) {
      this.#end();
      void this.#source.return?.();
    }
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #fail(error: unknown): IteratorResult<ExecutionResult> {
    this.#end();
    void this.#source.return?.();
    return { value: this.#options.failed(error), done: false };
  }

  #end(): void {
    this.#ended = true;
    this.#forget();
  }
}

function unauthenticated(): GatewayError {
  return new GatewayError('UNAUTHENTICATED', tokenExpired);
}
