import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { UpstreamCredentials } from '../config/config.js';
import { Secret } from '../config/secret.js';
import type { Logger } from '../observability/log.js';
import type { MachineMetrics } from '../observability/MachineMetrics.js';
import type { GatewayFacts } from './startupScreen.js';

type ToWorker =
  /** The service to use, when that is the sandbox the primary runs. */
  | {
      readonly kind: 'assignment';
      readonly upstream: (Omit<UpstreamCredentials, 'clientSecret'> & { clientSecret: string }) | undefined;
    }
  /** No worker accepts connections any more, and the listening socket is closed. */
  | { readonly kind: 'all closed' };

type ToPrimary =
  /** The first word: only now does the worker listen, and a message sent to it before would be lost. */
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready'; readonly facts: GatewayFacts }
  /** This worker accepts no more connections. */
  | { readonly kind: 'closed' };

export interface WorkersOptions {
  readonly count: number;
  readonly upstream: UpstreamCredentials | undefined;
  readonly metrics: MachineMetrics;
  readonly log: Logger;
}

/** A worker that dies within this time is replaced after a pause: something is wrong with the start itself, in milliseconds. */
const startMs = 5000;
const replacementPauseMs = 1000;

/** Processes that share one port. A dead one is replaced; all are drained together. */
export class Workers {
  readonly #accepting = new Set<Worker>();
  #stopping = false;

  constructor(private readonly options: WorkersOptions) {}

  /** Resolves when every worker serves. @throws Error when one ends before it does */
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
    const { upstream } = this.options;
    const worker = cluster.fork();
    const bornAt = Date.now();
    this.options.metrics.attend(worker);
    const plain = upstream && { ...upstream, clientSecret: upstream.clientSecret.reveal() };
    return new Promise((resolve, reject) => {
      worker.on('message', (message: ToPrimary) => {
        if (message?.kind === 'hello') worker.send({ kind: 'assignment', upstream: plain } satisfies ToWorker);
        if (message?.kind === 'closed') this.#closed(worker);
        if (message?.kind !== 'ready') return;
        this.#accepting.add(worker);
        this.options.metrics.join(worker);
        resolve(message.facts);
      });
      worker.once('exit', (code, signal) => {
        this.#closed(worker);
        reject(new Error('A worker process ended before it was ready'));
        this.#replace(worker, { code, signal, ageMs: Date.now() - bornAt });
      });
    });
  }

  #closed(worker: Worker): void {
    if (!this.#accepting.delete(worker) || this.#accepting.size > 0) return;
    for (const each of running()) each.send({ kind: 'all closed' } satisfies ToWorker, () => {}); // some may be gone
  }

  #replace(worker: Worker, death: { readonly code: number; readonly signal: string; readonly ageMs: number }): void {
    if (this.#stopping) return;
    this.options.metrics.noteDeath();
    this.options.log.error({ worker: worker.process.pid, ...death }, 'a worker process died and is replaced');
    const pauseMs = death.ageMs < startMs ? replacementPauseMs : 0;
    setTimeout(() => {
      if (!this.#stopping) this.#fork().catch(() => {}); // its own exit is seen to
    }, pauseMs);
  }
}

function running(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

/** In a worker: what the primary assigned. */
export async function assignedUpstream(): Promise<UpstreamCredentials | undefined> {
  process.send?.({ kind: 'hello' } satisfies ToPrimary);
  const [{ upstream }] = (await once(process, 'message')) as [Extract<ToWorker, { kind: 'assignment' }>];
  return upstream && { ...upstream, clientSecret: new Secret(upstream.clientSecret) };
}

/** In a worker: tells the primary that it serves. */
export function reportReady({ port, firstQuery }: GatewayFacts): void {
  process.send?.({ kind: 'ready', facts: { port, firstQuery } } satisfies ToPrimary);
}

/** In a worker that accepts no more connections: resolves when no worker does, and the listening socket is closed. */
export function allWorkersClosed(): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (message: ToWorker) => {
      if (message?.kind === 'all closed') resolve();
    });
    process.send?.({ kind: 'closed' } satisfies ToPrimary);
  });
}
