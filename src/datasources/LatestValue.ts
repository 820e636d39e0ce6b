/**
 * An async iterator for one reader, which asks for one value at a time; it buffers only the newest value. It is not an async
 * generator, because the `return()` of a generator waits for a pending `await`, and an iterator that nobody reads any more must
 * end at once.
 */
export class LatestValue<T> implements AsyncIterableIterator<T> {
  /** The value that the reader gets next. A value that was read is not kept: there may be many readers, and large values. */
  #unread: { readonly value: T } | undefined;
  #end: { readonly error?: unknown } | undefined;
  /** Wakes the reader that waits for a value or the end. */
  #wake = () => {};

  /** `onEnd` is called once, however the iteration ends. */
  constructor(private readonly onEnd: () => void) {}

  /** Offers a value; it replaces one that was not read yet. */
  push(value: T): void {
    this.#unread = { value };
    this.#wake();
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
    if ((this.#unread ?? this.#end) === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
    const unread = this.#unread;
    this.#unread = undefined;
    if (unread !== undefined) return { value: unread.value, done: false };
    const end = this.#end ?? {};
    this.#end = {}; // an error is thrown only once
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
}
