/**
 * The reader's end of a watch: an async iterator that holds the newest value only. It is not an async generator, because
 * `return()` of one waits for the `await` it is in, and a watch that nobody reads any more must end at once.
 */
export class Watch<T> implements AsyncIterableIterator<T> {
  readonly #onEnd: () => void;
  readonly #timer: NodeJS.Timeout;
  #newest: { readonly value: T } | undefined;
  #failure: { readonly error: unknown } | undefined;
  #waiting: PromiseWithResolvers<IteratorResult<T>> | undefined;
  #ended = false;

  /** Ends by itself after `maxMs` milliseconds; `onEnd` is called once, however it ends. */
  constructor(maxMs: number, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#timer = setTimeout(() => void this.return(), maxMs).unref();
  }

  /** Offers a value; one that was not read yet is forgotten. */
  push(value: T): void {
    if (this.#ended) return;
    if (this.#waiting === undefined) this.#newest = { value };
    else this.#settle((waiting) => waiting.resolve({ value, done: false }));
  }

  /** Ends the watch with an error, after the value not read yet. */
  fail(error: unknown): void {
    if (this.#ended) return;
    if (this.#waiting === undefined) this.#failure = { error };
    else this.#settle((waiting) => waiting.reject(error));
    this.#end();
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#newest !== undefined) {
      const { value } = this.#newest;
      this.#newest = undefined;
      return Promise.resolve({ value, done: false });
    }
    if (this.#failure !== undefined) {
      const { error } = this.#failure;
      this.#failure = undefined;
      return Promise.reject(error);
    }
    if (this.#ended) return Promise.resolve({ value: undefined, done: true });
    this.#waiting ??= deferred<IteratorResult<T>>();
    return this.#waiting.promise;
  }

  /** Ends the watch; a value not read yet can still be read. */
  return(): Promise<IteratorResult<T>> {
    this.#end();
    this.#settle((waiting) => waiting.resolve({ value: undefined, done: true }));
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #settle(how: (waiting: PromiseWithResolvers<IteratorResult<T>>) => void): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined) how(waiting);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#onEnd();
  }
}

/** `Promise.withResolvers` of Node 22, for Node 20. */
function deferred<T>(): PromiseWithResolvers<T> {
  let resolve!: PromiseWithResolvers<T>['resolve'];
  let reject!: PromiseWithResolvers<T>['reject'];
  const promise = new Promise<T>((res, rej) => {
    resolve = res;
    reject = rej;
  });
  return { promise, resolve, reject };
}
