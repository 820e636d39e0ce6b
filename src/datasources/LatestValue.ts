/**
 * An async iterator for one reader that buffers only the newest value. It is not an async generator, because the `return()`
 * of a generator waits for a pending `await`, and an iterator that nobody reads any more must end at once.
 */
export class LatestValue<T> implements AsyncIterableIterator<T> {
  /** The value that the reader gets next. A value that was read is not kept: there may be many readers, and large values. */
  #unread: { readonly value: T } | undefined;
  #end: { readonly error?: unknown } | undefined;
  /** Wakes the calls of `next()` that wait for a value or the end. */
  readonly #waiting: (() => void)[] = [];

  /** `onEnd` is called once, however the iteration ends. */
  constructor(private readonly onEnd: () => void) {}

  /** Offers a value; it replaces one that was not read yet. */
  push(value: T): void {
    if (this.#end !== undefined) return;
    this.#unread = { value };
    this.#wake();
  }

  /** Forgets a value that was not read yet. */
  drop(): void {
    this.#unread = undefined;
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

  async next(): Promise<IteratorResult<T>> {
    while (this.#unread === undefined && this.#end === undefined) {
      await new Promise<void>((wake) => this.#waiting.push(wake));
    }
    if (this.#unread !== undefined) {
      const { value } = this.#unread;
      this.#unread = undefined;
      return { value, done: false };
    }
    const end = this.#end ?? {};
    this.#end = {};
    if ('error' in end) throw end.error;
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #endWith(end: { readonly error?: unknown }): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.onEnd();
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
