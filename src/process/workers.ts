import cluster, { type Worker } from 'node:cluster';
import type { UpstreamCredentials } from '../config/config.js';
import { Secret } from '../config/secret.js';
import type { Logger } from '../observability/log.js';
import type { MachineMetrics } from '../observability/MachineMetrics.js';
import type { GatewayFacts } from './startupScreen.js';

/** What the primary process tells a worker: the service to use, when that is the sandbox the primary runs. */
interface Assignment {
  readonly kind: 'assignment';
  readonly upstream: { readonly baseUrl: string; readonly clientId: string; readonly clientSecret: string } | undefined;
}

/** What a worker says first: only now does it listen, and a message sent to it before would be lost. */
interface Hello {
  readonly kind: 'hello';
}

/** What a worker tells the primary once it serves. */
interface Ready {
  readonly kind: 'ready';
  readonly facts: GatewayFacts;
}

/** What a worker tells the primary once it accepts no more connections. */
interface Closed {
  readonly kind: 'closed';
}

/** What the primary tells the workers once none of them does, and the listening socket is closed. */
interface AllClosed {
  readonly kind: 'all closed';
}

export interface WorkersOptions {
  readonly count: number;
  readonly upstream: UpstreamCredentials | undefined;
  readonly metrics: MachineMetrics;
  readonly log: Logger;
}

/** A worker that dies younger than this is not replaced at once: something is wrong with the start itself, in milliseconds. */
const infancyMs = 5000;
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
    const assignment: Assignment = {
      kind: 'assignment',
      upstream: upstream && { ...upstream, clientSecret: upstream.clientSecret.reveal() },
    };
    return new Promise((resolve, reject) => {
      worker.on('message', (message: Hello | Ready | Closed) => {
        if (message?.kind === 'hello') worker.send(assignment);
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
      each?.send({ kind: 'all closed' } satisfies AllClosed, () => {}); // one that is gone does not wait for it
    }
  }

  #replace(worker: Worker, death: { readonly code: number; readonly signal: string; readonly ageMs: number }): void {
    if (this.#stopping) return;
    this.#options.metrics.noteDeath();
    this.#options.log.error({ worker: worker.process.pid, ...death }, 'a worker process died and is replaced');
    const pauseMs = death.ageMs < infancyMs ? replacementPauseMs : 0;
    setTimeout(() => {
      if (!this.#stopping) this.#fork().catch(() => {}); // its own exit is seen to
    }, pauseMs);
  }
}

/** In a worker: what the primary assigned. */
export async function assignedUpstream(): Promise<UpstreamCredentials | undefined> {
  const assignment = await new Promise<Assignment>((resolve) => {
    process.once('message', (message) => resolve(message as Assignment));
    process.send?.({ kind: 'hello' } satisfies Hello);
  });
  const { upstream } = assignment;
  return upstream && { ...upstream, clientSecret: new Secret(upstream.clientSecret), clientSecretFile: undefined };
}

/** In a worker: tells the primary that it serves. */
export function reportReady(facts: GatewayFacts): void {
  process.send?.({ kind: 'ready', facts } satisfies Ready);
}

/** In a worker that accepts no more connections: resolves when no worker does, and the listening socket is closed. */
export function allWorkersClosed(): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (message: AllClosed) => {
      if (message?.kind === 'all closed') resolve();
    });
    process.send?.({ kind: 'closed' } satisfies Closed);
  });
}
