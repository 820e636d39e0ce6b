import { tokenExpired } from '../auth/verifyToken.js';
import { GatewayError } from '../errors/errors.js';
import type { Exit } from './Exit.js';
import type { Answer, Operation, OperationsOptions, Result } from './Operation.js';

/** Sends an answer. Resolves when the system has taken it: no further one is made before. */
type Send = (answer: Answer) => Promise<void> | undefined;

/** Begins a subscription: a stream of answers, or one answer when it cannot begin. */
export async function subscribe(
  operation: Operation,
  exit: Exit,
  options: OperationsOptions,
): Promise<Answer | ResultStream> {
  const { known, values, context } = operation;
  const source = await options.quota.timed(context.holder, () => known.eventsFor(values, context));
  if (!(Symbol.asyncIterator in source)) return exit.leave(operation, source);
  return new ResultStream(operation, source[Symbol.asyncIterator](), exit, options);
}

/**
 * The answers of a subscription, one per event, for one reader. Ends when its source ends, when the caller leaves, or with
 * UNAUTHENTICATED after the caller's token has expired. Backpressure: it reads its source only when the last answer was taken,
 * so a slow reader builds no queue.
 */
export class ResultStream {
  readonly kind = 'stream';
  #events = 0;

  constructor(
    readonly operation: Operation,
    private readonly source: AsyncIterator<unknown>,
    private readonly exit: Exit,
    private readonly options: OperationsOptions,
  ) {
    const { signal } = operation.facts;
    signal.addEventListener('abort', () => this.endSource());
    if (signal.aborted) this.endSource();
  }

  /**
   * Sends each answer, one after the other, and ends the operation. Keeps no answer while it waits for the next, and sends none
   * to a caller that has left. Rejects only as `send` does.
   */
  async sendTo(send: Send): Promise<void> {
    try {
      while (await this.#sendNext(send));
    } finally {
      this.endSource();
      this.operation.events = this.#events;
      this.exit.end(this.operation, { kind: 'result', status: 200 });
    }
  }

  /**
   * Returns whether more answers may follow. A function of its own, so that no variable keeps an answer in memory while the
   * next one is awaited.
   */
  async #sendNext(send: Send): Promise<boolean> {
    const { signal, caller, request } = this.operation.facts;
    let hasFailed = false;
    let answer: Answer | undefined;
    try {
      const { value, done } = await this.source.next();
      const result = done ? undefined : await this.#execute(value);
      if (Date.now() >= caller.expiresAt) throw new GatewayError('UNAUTHENTICATED', tokenExpired);
      // From here until the answer is sent nothing is awaited: other streams would make theirs meanwhile, and fill the memory.
      if (result && !signal.aborted) answer = this.#answer(result);
    } catch (error) {
      hasFailed = true;
      if (!signal.aborted) answer = this.exit.answerOfErrors(this.operation, [error]);
    }
    if (answer === undefined || signal.aborted) return false;
    // Cut off even if the system might take it at once: the answers of many streams that have news together would fill the memory.
    if (!this.exit.hasRoom(this.operation, answer)) {
      request.socket.destroy();
      return false;
    }
    this.#events += 1;
    const sent = send(answer);
    answer = undefined; // only the bytes that are made of it are kept until the client has read them
    await sent;
    return !hasFailed;
  }

  /** Ends the source. Transports call this when the token expires: a reader that waits then gets the last answer. */
  endSource(): void {
    void this.source.return?.();
  }

  /** Executes the operation for one event, and charges the caller for the work, as for a query. */
  async #execute(event: unknown): Promise<Result> {
    const { contextFor, quota } = this.options;
    const { facts, context, fields, known, values } = this.operation;
    const { holder, trail } = context;
    const turn = quota.turnOf(holder);
    if (turn !== undefined) await turn;
    // Each event gets a context of its own, so that it does not see what an earlier event has read.
    return quota.timed(holder, () => known.run(values, contextFor(facts, fields, trail), event));
  }

  /**
   * Makes the text of an answer, and charges the caller for the work. Not a closure in {@link #sendNext}: that would keep the
   * result in memory.
   */
  #answer(result: Result): Answer {
    return this.options.quota.timed(this.operation.context.holder, () => this.exit.answer(this.operation, result));
  }
}
