import { randomUUID } from 'node:crypto';
import type { Identity } from '../auth/identify.js';
import { GatewayError } from '../errors/errors.js';
import type { Answer } from '../operations/Exit.js';
import { requestOf } from '../operations/GraphQLRequest.js';
import type { Operation } from '../operations/Pipeline.js';
import { forEachAnswer } from '../operations/ResultStream.js';
import type { LiveOptions } from './admitStream.js';

export interface SocketOperationsOptions extends Pick<LiveOptions, 'pipeline' | 'streams'> {
  readonly identity: Identity;
  /** Most operations at once. */
  readonly maxOperations: number;
  /** Sends a message; resolves when the peer can take another. */
  readonly send: (message: string) => Promise<void>;
  /** Called when the last operation under way has ended. */
  readonly onIdle: () => void;
}

type Parameters = Readonly<Record<string, unknown>>;

interface RunningOperation {
  readonly id: string;
  /** Aborts when nobody wants its answers any more; nothing is sent about it after that. */
  readonly left: AbortController;
  isSubscription: boolean;
}

/**
 * The operations of one socket. A completed id may be used again while its operation is still ending; that one counts
 * until it has ended.
 */
export class SocketOperations {
  readonly #options: SocketOperationsOptions;
  /** Those whose results are wanted, by id. */
  readonly #wanted = new Map<string, RunningOperation>();
  readonly #running = new Set<RunningOperation>();

  constructor(options: SocketOperationsOptions) {
    this.#options = options;
  }

  /** Whether an operation with this id runs that its caller has not completed. */
  has(id: string): boolean {
    return this.#wanted.has(id);
  }

  get idle(): boolean {
    return this.#running.size === 0;
  }

  /** Runs an operation to its end. `id` must be free. */
  async run(id: string, parameters: Parameters): Promise<void> {
    const { maxOperations, pipeline, onIdle } = this.#options;
    const operation: RunningOperation = { id, left: new AbortController(), isSubscription: false };
    if (this.#running.size >= maxOperations) {
      const message = `At most ${maxOperations} operations at once on one connection (MAX_SUBSCRIPTIONS)`;
      const error = new GatewayError('RATE_LIMITED', message);
      return this.#refuse(operation, pipeline.refuse(error, { requestId: randomUUID() }, 'ws'));
    }
    this.#wanted.set(id, operation);
    this.#running.add(operation);
    try {
      await this.#perform(operation, parameters);
    } finally {
      this.#forget(operation);
      this.#running.delete(operation);
      if (this.idle) onIdle();
    }
  }

  /** Its caller wants no more of it. */
  complete(id: string): void {
    const operation = this.#wanted.get(id);
    if (operation !== undefined) this.#leave(operation);
  }

  /** Ends subscriptions without `complete`. */
  cutSubscriptions(): void {
    for (const operation of this.#running) if (operation.isSubscription) this.#leave(operation);
  }

  /** Ends all, for a socket that is closing. */
  stop(): void {
    for (const operation of this.#running) this.#leave(operation);
  }

  async #perform(running: RunningOperation, parameters: Parameters): Promise<void> {
    const { pipeline, streams, send, identity } = this.#options;
    const { id, left } = running;
    const facts = { ...identity, requestId: randomUUID(), signal: left.signal };
    let operation: Operation;
    try {
      const read = () => requestOf('POST', parameters, pipeline.limits.metadataDepth);
      operation = pipeline.prepare(await pipeline.admit(identity, read), facts, 'ws');
    } catch (error) {
      return this.#refuse(running, pipeline.refuse(error, facts, 'ws'));
    }
    if (left.signal.aborted) return;
    const { by, type } = operation.work;
    running.isSubscription = by !== 'refusal' && type === 'subscription';
    if (running.isSubscription && streams.draining) return;
    const result = await pipeline.runLive(operation);
    if (by === 'refusal') return this.#refuse(running, result as Answer);
    const head = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
    await forEachAnswer(result, left.signal, ({ text }) => send(`${head}${text}}`));
    if (left.signal.aborted) return;
    this.#forget(running);
    await send(JSON.stringify({ id, type: 'complete' }));
  }

  /** An error is the last that is said about an id. */
  async #refuse(operation: RunningOperation, { errors: payload }: Answer): Promise<void> {
    if (operation.left.signal.aborted) return;
    this.#forget(operation);
    await this.#options.send(JSON.stringify({ id: operation.id, type: 'error', payload }));
  }

  #leave(operation: RunningOperation): void {
    this.#forget(operation);
    operation.left.abort();
  }

  #forget(operation: RunningOperation): void {
    if (this.#wanted.get(operation.id) === operation) this.#wanted.delete(operation.id);
  }
}
