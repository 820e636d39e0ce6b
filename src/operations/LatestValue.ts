/**
 * An async iterator for one reader that holds the newest value only. It is not an async generator, whose `return()` waits
 * for the `await` it is in: an iterator that nobody reads any more must end at once.
 */
export class LatestValue<T> implements AsyncIterableIterator<T> {
  readonly #onEnd: () => void;
  #newest: { readonly value: T } | undefined;
  #failure: { readonly error: unknown } | undefined;
  #ended = false;
  /** Calls of `next()` that wait for something to give. */
  readonly #waiting: (() => void)[] = [];

  /** `onEnd` is called once, however it ends. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  /** Offers a value in place of one that was not read yet. */
  push(value: T): void {
    if (this.#ended) return;
    this.#newest = { value };
    this.#wake();
  }

  /** Ends with an error, after the value not read yet. */
  fail(error: unknown): void {
    if (!this.#ended) this.#failure = { error };
    void this.return();
  }

  async next(): Promise<IteratorResult<T>> {
    while (this.#newest === undefined && this.#failure === undefined && !this.#ended) {
      await new Promise<void>((look) => this.#waiting.push(look));
    }
    const newest = this.#newest;
    this.#newest = undefined;
    if (newest !== undefined) return { value: newest.value, done: false };
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
    return { value: undefined, done: true };
  }

  /** Ends; a value not read yet can still be read. */
  async return(): Promise<IteratorResult<T>> {
    if (!this.#ended) {
      this.#ended = true;
      this.#onEnd();
      this.#wake();
    }
    return { value: undefined, done: true };
  }

  #wake(): void {
    for (const look of this.#waiting.splice(0)) look();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
