import cluster, { type Worker } from 'node:cluster';
import type { Logger } from '../observability/log.js';
import type { MachineMetrics } from '../observability/MachineMetrics.js';
import type { Sandbox } from '../sandbox/Sandbox.js';
import type { GatewayFacts } from './startupScreen.js';

/** How to reach a sandbox that another process runs. */
export type SandboxAccess = Pick<Sandbox, 'url' | 'clientId' | 'clientSecret'>;

type ToWorker =
  | { readonly kind: 'assignment'; readonly sandbox: SandboxAccess | undefined }
  /** Answers `failed`: the primary has received the problem. */
  | { readonly kind: 'heard' }
  /** Answers `turn`, after every connection that the primary had for this worker when it was asked. */
  | { readonly kind: 'turn'; readonly mayClose: boolean }
  /** No worker accepts connections any more, and the listening socket is closed. */
  | { readonly kind: 'all closed' };

type ToPrimary =
  /** The first message. A message sent to the worker before it is lost, because the worker does not listen yet. */
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready'; readonly facts: GatewayFacts }
  /** It cannot start; `problem` is what to tell the operator. */
  | { readonly kind: 'failed'; readonly problem: string }
  /** Asks the primary to answer after a turn of its event loop. */
  | { readonly kind: 'turn' }
  /** This worker accepts no more connections, and has returned those that the primary gave it since. */
  | { readonly kind: 'closed' };

export interface WorkersOptions {
  readonly count: number;
  readonly sandbox: SandboxAccess | undefined;
  /** How long requests in flight may take to end, in milliseconds. */
  readonly drainTimeoutMs: number;
  readonly metrics: MachineMetrics;
  readonly log: Logger;
}

/** A worker that dies within `startMs` is replaced after a pause, because its start itself fails. Both in milliseconds. */
const startMs = 5000;
const replacementPauseMs = 1000;
/** Time after the drain in which a worker closes the store and sends its last spans, in milliseconds. */
const partingMs = 10_000;

/** Processes that share one port. A dead one is replaced; all are drained together. */
export class Workers {
  readonly #accepting = new Set<Worker>();
  #stopping = false;

  constructor(private readonly options: WorkersOptions) {}

  /**
   * Resolves when every worker serves; never, if {@link stop} is called before.
   * @throws Error with plain lines when a worker ends before it serves; the other workers are then killed
   */
  async start(): Promise<GatewayFacts> {
    process.once('exit', () => signalAll(running(), 'SIGKILL')); // a second signal ends the primary while workers run
    try {
      const [facts] = await Promise.all(Array.from({ length: this.options.count }, () => this.#fork()));
      return facts as GatewayFacts;
    } catch (error) {
      this.#stopping = true;
      signalAll(running(), 'SIGKILL');
      await ended(running());
      throw error;
    }
  }

  /** Drains all workers; resolves when all have ended. A worker that hangs is killed. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const killing = setTimeout(() => {
      const workers = running().map((worker) => worker.process.pid);
      this.options.log.error({ workers }, 'worker processes hang and are killed');
      signalAll(running(), 'SIGKILL');
    }, this.options.drainTimeoutMs + partingMs);
    signalAll(running(), 'SIGTERM');
    await ended(running());
    clearTimeout(killing);
  }

  /** Resolves when the worker serves. @throws FailedStart */
  #fork(): Promise<GatewayFacts> {
    const { sandbox, metrics } = this.options;
    const worker = cluster.fork();
    const bornAt = Date.now();
    metrics.attend(worker);
    const access = sandbox && { url: sandbox.url, clientId: sandbox.clientId, clientSecret: sandbox.clientSecret };
    let isReady = false;
    let problem: string | undefined;
    return new Promise((resolve, reject) => {
      worker.on('message', (message: ToPrimary) => {
        if (message?.kind === 'hello') worker.send({ kind: 'assignment', sandbox: access } satisfies ToWorker);
        if (message?.kind === 'turn') setImmediate(() => this.#answerTurn(worker));
        if (message?.kind === 'closed') this.#closed(worker);
        if (message?.kind === 'failed') {
          problem = message.problem;
          worker.send({ kind: 'heard' } satisfies ToWorker);
        }
        if (message?.kind !== 'ready') return;
        isReady = true;
        this.#accepting.add(worker);
        metrics.join(worker);
        resolve(message.facts);
      });
      const onEnd = (code?: number, signal?: string) => {
        this.#closed(worker);
        if (this.#stopping) return;
        const death = { worker: worker.process.pid, code, signal, problem, ageMs: Date.now() - bornAt };
        if (isReady) this.#replace(death);
        else reject(new FailedStart(death));
      };
      worker.once('exit', onEnd);
      // Either no process could be started, or a message did not reach a worker that ended: then `exit` follows.
      worker.on('error', () => worker.process.pid === undefined && onEnd());
    });
  }

  /** One worker stays open until the others have closed: when the last closes, the primary drops the connections it holds. */
  #answerTurn(worker: Worker): void {
    const [last] = this.#accepting;
    const mayClose = worker !== last || this.#accepting.size === 1 || !this.#stopping;
    worker.send({ kind: 'turn', mayClose } satisfies ToWorker);
  }

  #closed(worker: Worker): void {
    if (!this.#accepting.delete(worker) || (this.#accepting.size > 0 && this.#stopping)) return;
    for (const each of running()) each.send({ kind: 'all closed' } satisfies ToWorker);
  }

  #replace(death: Death): void {
    this.options.metrics.deaths.inc();
    this.options.log.error(death, 'a worker process died and is replaced');
    const fork = () => this.#stopping || this.#fork().catch((failed: FailedStart) => this.#replace(failed.death));
    setTimeout(fork, death.ageMs < startMs ? replacementPauseMs : 0);
  }
}

/** How a worker ended; `problem` is why it could not start. */
interface Death {
  readonly worker: number | undefined;
  readonly code: number | undefined;
  readonly signal: string | undefined;
  readonly problem: string | undefined;
  readonly ageMs: number;
}

/** A worker ended before it served. */
class FailedStart extends Error {
  constructor(readonly death: Death) {
    super(death.problem ?? 'A worker process ended before it was ready');
  }
}

function running(): Worker[] {
  const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  return workers.filter((worker) => worker.process.pid !== undefined && !worker.isDead());
}

function signalAll(workers: readonly Worker[], name: 'SIGTERM' | 'SIGKILL'): void {
  for (const worker of workers) worker.process.kill(name);
}

/** Resolves when all have ended. Not by `events.once`, which rejects when a message does not reach a worker. */
async function ended(workers: readonly Worker[]): Promise<void> {
  await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve))));
}

/** In a worker: the sandbox to use, when the primary runs one. */
export async function assignedSandbox(): Promise<SandboxAccess | undefined> {
  return (await ask({ kind: 'hello' }, 'assignment')).sandbox;
}

/** In a worker that cannot start: resolves when the primary has the problem, which it tells once for all workers. */
export async function reportFailure(problem: string): Promise<void> {
  await ask({ kind: 'failed', problem }, 'heard');
}

/** In a worker: tells the primary that it serves. */
export function reportReady({ port, firstQuery }: GatewayFacts): void {
  process.send?.({ kind: 'ready', facts: { port, firstQuery } } satisfies ToPrimary);
}

/**
 * In a worker: resolves when the primary has had a turn of its event loop and this worker has received every connection that
 * was meant for it by then. The result: whether this worker may close its side of the listening socket.
 */
export async function primaryTurn(): Promise<boolean> {
  return (await ask({ kind: 'turn' }, 'turn')).mayClose;
}

/** In a worker that accepts no more connections: resolves when no worker does, and the listening socket is closed. */
export async function allWorkersClosed(): Promise<void> {
  await primaryTurn(); // connections that came meanwhile have gone back to the primary, for another worker
  await ask({ kind: 'closed' }, 'all closed');
}

function ask<Kind extends ToWorker['kind']>(question: ToPrimary, kind: Kind) {
  return new Promise<Extract<ToWorker, { kind: Kind }>>((resolve) => {
    process.on('message', function hear(message: ToWorker) {
      if (message?.kind !== kind) return;
      process.off('message', hear);
      resolve(message as Extract<ToWorker, { kind: Kind }>);
    });
    process.send?.(question);
  });
}
