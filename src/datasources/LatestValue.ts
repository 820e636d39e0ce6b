/**
 * An async iterator for one reader that buffers only the newest value. It is not an async generator, because the `return()`
 * of a generator waits for a pending `await`, and an iterator that nobody reads any more must end at once.
 */
export class LatestValue<T> implements AsyncIterableIterator<T> {
  /** The value that the reader gets next. A value that was read is not kept: there may be many readers, and large values. */
  #unread: { readonly value: T } | undefined;
  #end: { readonly error?: unknown } | undefined;
  /** The calls of `next()` that wait for a value or the end. */
  readonly #waiting: ((next: IteratorResult<T> | Promise<never>) => void)[] = [];

  /** `onEnd` is called once, however the iteration ends. */
  constructor(private readonly onEnd: () => void) {}

  /** Offers a value; it replaces one that was not read yet. */
  push(value: T): void {
    this.#unread = { value };
    this.#serve();
  }

  /** Ends with an error; a value not read yet comes first. */
  fail(error: unknown): void {
    this.#endWith({ error });
  }

  /** Ends; a value not read yet can still be read. */
  async return(): Promise<IteratorResult<T>> {
    this.#endWith({});
    return { value: undefined, done: true };
  }

  next(): Promise<IteratorResult<T>> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#serve();
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #endWith(end: { readonly error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.onEnd();
    this.#serve();
  }

  #serve(): void {
    while (this.#waiting.length > 0 && (this.#unread ?? this.#end) !== undefined) this.#waiting.shift()?.(this.#take());
  }

  #take(): IteratorResult<T> | Promise<never> {
    if (this.#unread !== undefined) {
      const { value } = this.#unread;
      this.#unread = undefined;
      return { value, done: false };
    }
    const end = this.#end ?? {};
    this.#end = {};
    return 'error' in end ? Promise.reject(end.error) : { value: undefined, done: true };
  }
}
