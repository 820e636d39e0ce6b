import type { Worker } from 'node:cluster';
import {
  AggregatorRegistry,
  Counter,
  Gauge,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';

type Snapshot = MetricObjectWithValues<MetricValue<string>>[];

type ToWorker =
  | { readonly kind: 'snapshot-wanted'; readonly id: number }
  | { readonly kind: 'machine-metrics'; readonly id: number; readonly text: string };
type ToPrimary =
  | { readonly kind: 'snapshot'; readonly id: number; readonly snapshot: Snapshot }
  | { readonly kind: 'machine-metrics-wanted'; readonly id: number };

/** Longest wait for the numbers of one process; one that hangs is left out of this answer, in milliseconds. */
const patienceMs = 2000;

/** Questions to another process, each with an id that its answer bears. */
class Questions<Answer> {
  readonly #asked = new Map<number, (answer: Answer | undefined) => void>();
  #lastId = 0;

  /** Undefined when no answer came in time. */
  ask(waitMs: number, send: (id: number) => void): Promise<Answer | undefined> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.answer(id, undefined), waitMs);
      this.#asked.set(id, (answer) => {
        clearTimeout(timer);
        this.#asked.delete(id);
        resolve(answer);
      });
      send(id);
    });
  }

  answer(id: number, answer: Answer | undefined): void {
    this.#asked.get(id)?.(answer);
  }
}

/**
 * In the primary process: the numbers of all workers of this machine as one, so that a scrape does not depend on which
 * of them it happens to reach. What a dead worker had counted, as last seen, stays in the sums: a counter that went
 * down would look like a restart of everything.
 */
export class MachineMetrics {
  readonly #registry = new Registry();
  readonly #deaths = new Counter({
    name: 'gateway_worker_deaths_total',
    help: 'Worker processes that died and were replaced.',
    registers: [this.#registry],
  });
  readonly #workers = new Map<Worker, Snapshot>();
  readonly #questions = new Questions<Snapshot>();
  /** Sums of the workers that are gone. */
  #departed: Snapshot = [];

  constructor() {
    const size = () => this.#workers.size;
    new Gauge({
      name: 'gateway_workers',
      help: 'Worker processes that serve.',
      registers: [this.#registry],
      collect() {
        this.set(size());
      },
    });
  }

  /** Answers a worker as soon as it is forked: its first request may come before we hear that it serves. */
  attend(worker: Worker): void {
    worker.on('message', async (message: ToPrimary) => {
      if (message?.kind === 'snapshot') this.#questions.answer(message.id, message.snapshot);
      if (message?.kind !== 'machine-metrics-wanted') return;
      const text = await this.text();
      if (worker.isConnected()) worker.send({ kind: 'machine-metrics', id: message.id, text } satisfies ToWorker);
    });
    worker.once('exit', () => void this.#keepSumsOf(worker));
  }

  /** Takes a worker that serves into account until it exits. */
  join(worker: Worker): void {
    this.#workers.set(worker, []);
  }

  noteDeath(): void {
    this.#deaths.inc();
  }

  /** Everything in Prometheus' text format. */
  async text(): Promise<string> {
    await Promise.all([...this.#workers.keys()].map((worker) => this.#ask(worker)));
    const own = (await this.#registry.getMetricsAsJSON()) as Snapshot;
    return AggregatorRegistry.aggregate([...this.#workers.values(), this.#departed, own]).metrics();
  }

  async #ask(worker: Worker): Promise<void> {
    if (!worker.isConnected()) return;
    const ask = (id: number) => worker.send({ kind: 'snapshot-wanted', id } satisfies ToWorker);
    const snapshot = await this.#questions.ask(patienceMs, ask);
    if (snapshot !== undefined && this.#workers.has(worker)) this.#workers.set(worker, snapshot);
  }

  async #keepSumsOf(worker: Worker): Promise<void> {
    const counted = (this.#workers.get(worker) ?? []).filter(({ type }) => String(type) !== 'gauge');
    this.#workers.delete(worker);
    const sums = AggregatorRegistry.aggregate([this.#departed, counted]);
    this.#departed = (await sums.getMetricsAsJSON()) as Snapshot;
  }
}

/** In a worker: answers the primary's questions, and gives what it makes of all workers' numbers. */
export function connectToMachine(registry: Registry): { readonly text: () => Promise<string> } {
  const questions = new Questions<string>();
  process.on('message', async (message: ToWorker) => {
    if (message?.kind === 'machine-metrics') questions.answer(message.id, message.text);
    if (message?.kind !== 'snapshot-wanted') return;
    const snapshot = (await registry.getMetricsAsJSON()) as Snapshot;
    process.send?.({ kind: 'snapshot', id: message.id, snapshot } satisfies ToPrimary);
  });
  const ask = (id: number) => process.send?.({ kind: 'machine-metrics-wanted', id } satisfies ToPrimary);
  return {
    // A primary that does not answer must not hold a scrape: this process's own numbers are better than none.
    text: async () => (await questions.ask(2 * patienceMs, ask)) ?? registry.metrics(),
  };
}
