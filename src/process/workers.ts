import cluster, { type Worker } from 'node:cluster';
import type { UpstreamCredentials } from '../config/config.js';
import { Secret } from '../config/secret.js';
import type { Logger } from '../observability/log.js';
import type { MachineMetrics } from '../observability/MachineMetrics.js';
import type { GatewayFacts } from './startupScreen.js';

type ToWorker =
  /** The service to use, when that is the sandbox the primary runs. */
  | { readonly kind: 'assignment'; readonly upstream: PlainCredentials | undefined }
  /** No worker accepts connections any more, and the listening socket is closed. */
  | { readonly kind: 'all closed' };

type ToPrimary =
  /** The first word: only now does the worker listen, and a message sent to it before would be lost. */
  | { readonly kind: 'hello' }
  | { readonly kind: 'ready'; readonly facts: GatewayFacts }
  /** This worker accepts no more connections. */
  | { readonly kind: 'closed' };

type PlainCredentials = { readonly [Key in 'baseUrl' | 'clientId' | 'clientSecret']: string };

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
  readonly #options: WorkersOptions;
  readonly #accepting = new Set<Worker>();
  #stopping = false;

  constructor(options: WorkersOptions) {
    this.#options = options;
  }

  /** Resolves when every worker serves. @throws Error when one ends before it does */
  async start(): Promise<GatewayFacts> {
    const ready = await Promise.all(Array.from({ length: this.#options.count }, () => this.#fork()));
    const [facts] = ready;
    if (facts === undefined) throw new Error('WORKERS must be at least 1');
    return facts;
  }

  /** Has every worker answer what it has in flight; resolves when all are gone. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(
      workers.map((worker) => {
        const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
        worker.process.kill('SIGTERM');
        return gone;
      }),
    );
  }

  #fork(): Promise<GatewayFacts> {
    const { upstream } = this.#options;
    const worker = cluster.fork();
    const bornAt = Date.now();
    this.#options.metrics.attend(worker);
    const plain = upstream && { ...upstream, clientSecret: upstream.clientSecret.reveal() };
    return new Promise((resolve, reject) => {
      worker.on('message', (message: ToPrimary) => {
        if (message?.kind === 'hello') worker.send({ kind: 'assignment', upstream: plain } satisfies ToWorker);
        if (message?.kind === 'closed') this.#closed(worker);
        if (message?.kind !== 'ready') return;
        this.#accepting.add(worker);
        this.#options.metrics.join(worker);
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
    for (const each of Object.values(cluster.workers ?? {})) {
      each?.send({ kind: 'all closed' } satisfies ToWorker, () => {}); // one that is gone does not wait for it
    }
  }

  #replace(worker: Worker, death: { readonly code: number; readonly signal: string; readonly ageMs: number }): void {
    if (this.#stopping) return;
    this.#options.metrics.noteDeath();
    this.#options.log.error({ worker: worker.process.pid, ...death }, 'a worker process died and is replaced');
    const pauseMs = death.ageMs < startMs ? replacementPauseMs : 0;
    setTimeout(() => {
      if (!this.#stopping) this.#fork().catch(() => {}); // its own exit is seen to
    }, pauseMs);
  }
}

/** In a worker: what the primary assigned. */
export async function assignedUpstream(): Promise<UpstreamCredentials | undefined> {
  const message = await new Promise<ToWorker>((resolve) => {
    process.once('message', (first) => resolve(first as ToWorker));
    process.send?.({ kind: 'hello' } satisfies ToPrimary);
  });
  if (message.kind !== 'assignment' || message.upstream === undefined) return undefined;
  const { upstream } = message;
  return { ...upstream, clientSecret: new Secret(upstream.clientSecret), clientSecretFile: undefined };
}

/** In a worker: tells the primary that it serves. */
export function reportReady(facts: GatewayFacts): void {
  process.send?.({ kind: 'ready', facts } satisfies ToPrimary);
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
