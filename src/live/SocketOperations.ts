import type { Identity } from '../auth/identify.js';
import { GatewayError } from '../errors/errors.js';
import { shuttingDown } from '../http/EventStream.js';
import type { Answer } from '../operations/answer.js';
import type { Client } from '../operations/clientName.js';
import { requestOf } from '../operations/GraphQLRequest.js';
import type { Operation } from '../operations/Operation.js';
import { forEachAnswer } from '../operations/ResultStream.js';
import type { LiveOptions } from './LiveOptions.js';

export interface SocketOperationsOptions extends LiveOptions {
  readonly identity: Identity;
  readonly client: Client;
  /** Sends a message; resolves when the peer can take another. */
  readonly send: (message: string) => Promise<void>;
  /** Called when an operation is refused; `size` is that of its message, in characters. */
  readonly onRefused: (size: number) => void;
  /** Called when the last running operation has ended. */
  readonly onIdle: () => void;
}

type Parameters = Readonly<Record<string, unknown>>;

interface RunningOperation {
  readonly id: string;
  /** Aborts when the client completes the operation or we end it, and before its last message. Then the id is free. */
  readonly left: AbortController;
  isSubscription: boolean;
}

/** The operations of one socket. An operation that the client has completed counts until its work has ended. */
export class SocketOperations {
  readonly #running = new Set<RunningOperation>();

  constructor(private readonly options: SocketOperationsOptions) {}

  /** Whether an operation with this id is running that the client has not completed. */
  has(id: string): boolean {
    return this.#find(id) !== undefined;
  }

  get idle(): boolean {
    return this.#running.size === 0;
  }

  /** Runs an operation to its end. `id` must be free; `size` is that of the message, in characters. */
  async run(id: string, parameters: Parameters, size: number): Promise<void> {
    const { operations, onIdle, identity, client } = this.options;
    const operation: RunningOperation = { id, left: new AbortController(), isSubscription: false };
    const refusal = this.#refusalNow();
    if (refusal !== undefined) {
      const facts = { ...identity, client, requestId: crypto.randomUUID(), startedAt: performance.now() };
      return this.#refuse(operation, operations.refuse(refusal, facts, 'ws'), size);
    }
    this.#running.add(operation);
    try {
      await this.#perform(operation, parameters, size);
    } finally {
      this.#running.delete(operation);
      if (this.idle) onIdle();
    }
  }

  /** Ends an operation that the client has completed; false when none has this id. */
  complete(id: string): boolean {
    const operation = this.#find(id);
    operation?.left.abort();
    return operation !== undefined;
  }

  /** Ends subscriptions without sending `complete`. */
  cutSubscriptions(): void {
    for (const { isSubscription, left } of this.#running) if (isSubscription) left.abort();
  }

  /** Ends all, for a socket that is closing. */
  stop(): void {
    for (const { left } of this.#running) left.abort();
  }

  /** Why no operation may begin now, if so. */
  #refusalNow(): GatewayError | undefined {
    const { maxOperations, streams } = this.options;
    if (streams.draining) return shuttingDown;
    if (this.#running.size < maxOperations) return undefined;
    const message = `At most ${maxOperations} operations at once on one connection (MAX_SUBSCRIPTIONS)`;
    return new GatewayError('RATE_LIMITED', message);
  }

  #find(id: string): RunningOperation | undefined {
    for (const operation of this.#running) if (operation.id === id && !operation.left.signal.aborted) return operation;
    return undefined;
  }

  async #perform(running: RunningOperation, parameters: Parameters, size: number): Promise<void> {
    const { operations, streams, send, identity, client } = this.options;
    const { id, left } = running;
    const known = { requestId: crypto.randomUUID(), startedAt: performance.now(), client };
    const facts = { ...identity, ...known, signal: left.signal };
    let operation: Operation;
    try {
      const read = () => ({ ...requestOf('POST', parameters, operations.limits.metadataDepth), size });
      operation = operations.prepare(await operations.admit(identity, read), facts, 'ws');
    } catch (error) {
      return this.#refuse(running, operations.refuse(error, facts, 'ws'), size);
    }
    if (left.signal.aborted) return;
    running.isSubscription = operation.work.way === 'events';
    if (running.isSubscription && streams.draining) return;
    const result = await operations.run(operation);
    if (operation.work.way === undefined) return this.#refuse(running, result as Answer, size);
    const head = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
    await forEachAnswer(result, left.signal, ({ text }) => send(`${head}${text}}`));
    if (left.signal.aborted) return;
    left.abort();
    await send(JSON.stringify({ id, type: 'complete' }));
  }

  /** Sends an error, which is the last message about an id. */
  async #refuse({ id, left }: RunningOperation, { errors: payload }: Answer, size: number): Promise<void> {
    const { onRefused, send } = this.options;
    onRefused(size);
    if (left.signal.aborted) return;
    left.abort();
    await send(JSON.stringify({ id, type: 'error', payload }));
  }
}
