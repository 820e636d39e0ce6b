import type { Worker } from 'node:cluster';
import { on } from 'node:events';
import {
  AggregatorRegistry,
  Counter,
  Gauge,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';

type Snapshot = MetricObjectWithValues<MetricValue<string>>[];

type ToWorker = { readonly kind: 'snapshot-wanted' } | { readonly kind: 'machine-metrics'; readonly text: string };
type ToPrimary =
  | { readonly kind: 'snapshot'; readonly snapshot: Snapshot }
  | { readonly kind: 'machine-metrics-wanted' };

/** Longest wait for the metrics of one process, in milliseconds. One that hangs counts with its last snapshot. */
const patienceMs = 2000;

/**
 * In the primary process: adds up the metrics of all workers of this machine, whichever worker a scrape reaches. The last
 * known counts of a dead worker stay in the sums: a counter that went down would look like a restart of everything.
 */
export class MachineMetrics {
  readonly #registry = new Registry();
  readonly deaths = new Counter({
    name: 'gateway_worker_deaths_total',
    help: 'Worker processes that died and were replaced.',
    registers: [this.#registry],
  });
  readonly #serving = new Gauge({
    name: 'gateway_workers',
    help: 'Worker processes that serve.',
    registers: [this.#registry],
  });
  readonly #workers = new Map<Worker, Snapshot>();
  /** Sums of the workers that are gone. */
  #departed: Snapshot = [];

  /** Answers a worker as soon as it is forked: it may get a request before it reports that it serves. */
  attend(worker: Worker): void {
    worker.on('message', async (message: ToPrimary) => {
      if (message?.kind === 'snapshot' && this.#workers.has(worker)) this.#workers.set(worker, message.snapshot);
      if (message?.kind !== 'machine-metrics-wanted') return;
      worker.send({ kind: 'machine-metrics', text: await this.text() } satisfies ToWorker);
    });
    worker.once('exit', () => void this.#keepSumsOf(worker));
  }

  /** Takes a worker that serves into account until it exits. */
  join(worker: Worker): void {
    this.#workers.set(worker, []);
    this.#serving.set(this.#workers.size);
  }

  /** The metrics of the whole machine. */
  readonly text = shared(async () => {
    const connected = [...this.#workers.keys()].filter((worker) => worker.isConnected());
    await Promise.all(connected.map((worker) => ask(worker, { kind: 'snapshot-wanted' }, 'snapshot', patienceMs)));
    const own = (await this.#registry.getMetricsAsJSON()) as Snapshot;
    return AggregatorRegistry.aggregate([...this.#workers.values(), this.#departed, own]).metrics();
  });

  async #keepSumsOf(worker: Worker): Promise<void> {
    const counted = (this.#workers.get(worker) ?? []).filter(({ type }) => String(type) !== 'gauge');
    this.#workers.delete(worker);
    this.#serving.set(this.#workers.size);
    const sums = AggregatorRegistry.aggregate([this.#departed, counted]);
    this.#departed = (await sums.getMetricsAsJSON()) as Snapshot;
  }
}

/** In a worker: sends the primary its snapshot when asked. Returns what gets the metrics of the whole machine. */
export function connectToMachine(registry: Registry): () => Promise<string> {
  process.on('message', async (message: ToWorker) => {
    if (message?.kind !== 'snapshot-wanted') return;
    const snapshot = (await registry.getMetricsAsJSON()) as Snapshot;
    process.send?.({ kind: 'snapshot', snapshot } satisfies ToPrimary);
  });
  return shared(async () => {
    const answer = await ask<ToWorker>(process, { kind: 'machine-metrics-wanted' }, 'machine-metrics', 2 * patienceMs);
    // A primary that does not answer must not hold up a scrape: this process's own metrics are better than none.
    return answer && 'text' in answer ? answer.text : registry.metrics();
  });
}

/** Concurrent callers share one call. */
function shared(call: () => Promise<string>): () => Promise<string> {
  let underWay: Promise<string> | undefined;
  return () => {
    underWay ??= call().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}

/** Sends a question and resolves with the next message of the `kind` wanted; with undefined when none comes in time. */
async function ask<Answer extends ToWorker | ToPrimary>(
  other: NodeJS.EventEmitter & { send?(message: ToWorker | ToPrimary): boolean },
  question: ToWorker | ToPrimary,
  kind: Answer['kind'],
  waitMs: number,
): Promise<Answer | undefined> {
  const messages = on(other, 'message', { signal: AbortSignal.timeout(waitMs) });
  other.send?.(question);
  try {
    for await (const [message] of messages) if (message?.kind === kind) return message;
  } catch {} // time is up
  return undefined;
}
