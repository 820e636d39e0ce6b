import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Logger } from '../observability/log.js';
import type { MachineMetrics } from '../observability/MachineMetrics.js';
import type { Sandbox } from '../sandbox/Sandbox.js';
import type { GatewayFacts } from './startupScreen.js';

/** How to reach a sandbox that another process runs. */
export type SandboxAccess = Pick<Sandbox, 'url' | 'clientId' | 'clientSecret'>;

type ToWorker =
  | { readonly kind: 'assignment'; readonly sandbox: SandboxAccess | undefined }
  /** Comes after every connection that the primary had for this worker when it was asked. */
  | { readonly kind: 'turn'; readonly mayClose: boolean }
  /** No worker accepts connections any more, and the listening socket is closed. */
  | { readonly kind: 'all closed' };

type ToPrimary =
  /** The first word: only now does the worker listen, and a message sent to it before would be lost. */
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready'; readonly facts: GatewayFacts }
  /** Asks for the primary's turn. */
  | { readonly kind: 'turn' }
  /** This worker accepts no more connections, and has sent back what the primary gave it since. */
  | { readonly kind: 'closed' };

export interface WorkersOptions {
  readonly count: number;
  readonly sandbox: SandboxAccess | undefined;
  readonly metrics: MachineMetrics;
  readonly log: Logger;
}

/** A worker that dies within this time is replaced after a pause, both in milliseconds: its start itself fails. */
const startMs = 5000;
const replacementPauseMs = 1000;

/** Processes that share one port. A dead one is replaced; all are drained together. */
export class Workers {
  readonly #accepting = new Set<Worker>();
  #stopping = false;

  constructor(private readonly options: WorkersOptions) {}

  /** Resolves when every worker serves; never, if it is stopped before. @throws Error when one ends before it does */
  async start(): Promise<GatewayFacts> {
    const [facts] = await Promise.all(Array.from({ length: this.options.count }, () => this.#fork()));
    return facts as GatewayFacts;
  }

  /** Has every worker answer what it has in flight; resolves when all are gone. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(
      running().map((worker) => {
        worker.process.kill('SIGTERM');
        return once(worker, 'exit');
      }),
    );
  }

  #fork(): Promise<GatewayFacts> {
    const { sandbox, metrics } = this.options;
    const worker = cluster.fork();
    const bornAt = Date.now();
    metrics.attend(worker);
    const access = sandbox && { url: sandbox.url, clientId: sandbox.clientId, clientSecret: sandbox.clientSecret };
    return new Promise((resolve, reject) => {
      worker.on('message', (message: ToPrimary) => {
        if (message?.kind === 'hello') worker.send({ kind: 'assignment', sandbox: access } satisfies ToWorker);
        if (message?.kind === 'turn') setImmediate(() => this.#answerTurn(worker));
        if (message?.kind === 'closed') this.#closed(worker);
        if (message?.kind !== 'ready') return;
        this.#accepting.add(worker);
        metrics.join(worker);
        resolve(message.facts);
      });
      worker.once('exit', (code, signal) => {
        this.#closed(worker);
        if (this.#stopping) return;
        reject(new Error('A worker process ended before it was ready'));
        this.#replace({ worker: worker.process.pid, code, signal, ageMs: Date.now() - bornAt });
      });
    });
  }

  /** One worker stays open until the others are closed: with the last, the primary drops every connection that it holds. */
  #answerTurn(worker: Worker): void {
    const [last] = this.#accepting;
    const mayClose = worker !== last || this.#accepting.size === 1 || !this.#stopping;
    worker.send({ kind: 'turn', mayClose } satisfies ToWorker, () => {}); // it may be gone
  }

  #closed(worker: Worker): void {
    if (!this.#accepting.delete(worker) || (this.#accepting.size > 0 && this.#stopping)) return;
    for (const each of running()) each.send({ kind: 'all closed' } satisfies ToWorker, () => {}); // some may be gone
  }

  #replace(death: { readonly ageMs: number; readonly [detail: string]: unknown }): void {
    this.options.metrics.deaths.inc();
    this.options.log.error(death, 'a worker process died and is replaced');
    const fork = () => this.#stopping || this.#fork().catch(() => {}); // its own exit is seen to
    setTimeout(fork, death.ageMs < startMs ? replacementPauseMs : 0);
  }
}

function running(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

/** In a worker: the sandbox to use, when the primary runs one. */
export async function assignedSandbox(): Promise<SandboxAccess | undefined> {
  return (await ask({ kind: 'hello' }, 'assignment')).sandbox;
}

/** In a worker: tells the primary that it serves. */
export function reportReady({ port, firstQuery }: GatewayFacts): void {
  process.send?.({ kind: 'ready', facts: { port, firstQuery } } satisfies ToPrimary);
}

/**
 * In a worker: resolves when the primary has had a turn of its event loop, and this worker every connection that was for it
 * by then; with whether it may close its side of the listening socket.
 */
export async function primaryTurn(): Promise<boolean> {
  return (await ask({ kind: 'turn' }, 'turn')).mayClose;
}

/** In a worker that accepts no more connections: resolves when no worker does, and the listening socket is closed. */
export async function allWorkersClosed(): Promise<void> {
  await primaryTurn(); // what came meanwhile has gone back to the primary, for another worker
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
