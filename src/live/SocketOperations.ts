import { randomUUID } from 'node:crypto';
import type { ExecutionResult } from 'graphql';
import type { Identity } from '../auth/identify.js';
import { GatewayError } from '../errors/errors.js';
import type { LiveOperations, LiveRequest, MaskedError } from '../operations/LiveOperations.js';
import type { OpenStreams } from './OpenStreams.js';
import { pipeStream } from './pipeResults.js';
import { ResultStream } from './ResultStream.js';

export interface SocketOperationsOptions {
  readonly operations: LiveOperations;
  readonly streams: OpenStreams;
  readonly identity: Identity;
  /** Most operations at once. */
  readonly maxOperations: number;
  /** Resolves when the peer can take another. */
  readonly send: (answer: OperationAnswer) => Promise<void>;
  /** Called when the last operation under way has ended. */
  readonly onIdle: () => void;
}

/** What is said about an operation, under the id its caller gave it. */
export type OperationAnswer =
  | { readonly id: string; readonly type: 'next'; readonly payload: ExecutionResult }
  | { readonly id: string; readonly type: 'error'; readonly payload: readonly MaskedError[] }
  | { readonly id: string; readonly type: 'complete' };

interface RunningOperation {
  readonly id: string;
  /** Aborts when nobody wants its results any more; nothing is said about it after that. */
  readonly left: AbortController;
  isSubscription: boolean;
}

/**
 * The operations of one socket. Each is known by itself and not by its id, which its caller may use again once they have
 * completed it, although its work may take a moment to end; until then it counts.
 */
export class SocketOperations {
  readonly #options: SocketOperationsOptions;
  /** Those whose results are wanted, by id. */
  readonly #wanted = new Map<string, RunningOperation>();
  readonly #running = new Set<RunningOperation>();

  constructor(options: SocketOperationsOptions) {
    this.#options = options;
  }

  /** Whether an operation with this id is under way that its caller has not completed. */
  has(id: string): boolean {
    return this.#wanted.has(id);
  }

  get idle(): boolean {
    return this.#running.size === 0;
  }

  /** Runs an operation to its end. `id` must be free. */
  async run(id: string, request: LiveRequest): Promise<void> {
    if (this.#running.size >= this.#options.maxOperations) return this.#refuseOneMore(id);
    const operation: RunningOperation = { id, left: new AbortController(), isSubscription: false };
    this.#wanted.set(id, operation);
    this.#running.add(operation);
    try {
      await this.#perform(operation, request);
    } finally {
      this.#forget(operation);
      this.#running.delete(operation);
      if (this.idle) this.#options.onIdle();
    }
  }

  /** Its caller wants no more of an operation. */
  complete(id: string): void {
    const operation = this.#wanted.get(id);
    if (operation !== undefined) this.#leave(operation);
  }

  /** Ends subscriptions without a word, so that clients do not take them for complete. */
  cutSubscriptions(): void {
    for (const operation of this.#running) if (operation.isSubscription) this.#leave(operation);
  }

  /** Ends all, for a socket that is closing. */
  stop(): void {
    for (const operation of this.#running) this.#leave(operation);
  }

  async #perform(operation: RunningOperation, request: LiveRequest): Promise<void> {
    const { operations, streams, identity, send } = this.#options;
    const { id, left } = operation;
    const facts = { ...identity, requestId: randomUUID(), signal: left.signal };
    const prepared = await operations.prepare(request, facts, 'ws');
    if (left.signal.aborted) return;
    if (prepared.kind === 'refused') {
      this.#forget(operation); // an error is the last that is said about an id
      return send({ id, type: 'error', payload: prepared.errors });
    }
    operation.isSubscription = prepared.type === 'subscription';
    if (operation.isSubscription && streams.draining) return;
    const result = await operations.perform(prepared);
    const write = (payload: ExecutionResult) => send({ id, type: 'next', payload });
    if (result instanceof ResultStream) await pipeStream(result, write, left.signal);
    else if (!left.signal.aborted) await write(result);
    if (left.signal.aborted) return;
    this.#forget(operation);
    await send({ id, type: 'complete' });
  }

  async #refuseOneMore(id: string): Promise<void> {
    const { operations, maxOperations, send } = this.#options;
    const message = `At most ${maxOperations} operations at once on one connection (MAX_SUBSCRIPTIONS)`;
    await send({
      id,
      type: 'error',
      payload: [operations.mask(new GatewayError('RATE_LIMITED', message), randomUUID())],
    });
  }

  #leave(operation: RunningOperation): void {
    this.#forget(operation);
    operation.left.abort();
  }

  #forget(operation: RunningOperation): void {
    if (this.#wanted.get(operation.id) === operation) this.#wanted.delete(operation.id);
  }
}
