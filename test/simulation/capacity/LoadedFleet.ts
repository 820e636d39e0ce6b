import type { Config } from '../../../src/config/config.js';
import type { JobId, TaxpayerId } from '../../../src/datasources/identifiers.js';
import { GatewayError } from '../../../src/errors/errors.js';
import { NodeRuntime } from '../NodeRuntime.js';
import type { StoreFault } from '../plan.js';
import { SimulatedService } from '../SimulatedService.js';
import { SimulatedStore } from '../SimulatedStore.js';
import { StoreLine } from '../StoreLine.js';
import { beginsAt, World } from '../World.js';
import { configOf, wireProcess } from '../wireProcess.js';
import { Counts } from './Counts.js';

export const day = 86_400_000;

/** The fleet and its load, of the sample only: the whole fleet has `sample` times as much. */
export interface Load {
  readonly processes: number;
  /** Taxpayers that are asked for. */
  readonly taxpayers: number;
  readonly requestsPerSecond: number;
  /** Share of the requests that ask for a job; the others ask for a token record. */
  readonly jobShare: number;
  /** Refresh jobs that are under way at any time, each with one watcher. */
  readonly jobsUnderWay: number;
  readonly jobMs: number;
  /** Slowest answer of the service, in milliseconds; the mean is half of it. */
  readonly slowestMs: number;
  readonly settings: Readonly<Record<string, string>>;
}

type Process = ReturnType<LoadedFleet['start']>;

/** A world without a trace, which would not fit into memory. */
class SilentWorld extends World {
  override tell(): void {}
}

/** A fleet of the real classes under an even load. The store has the records of all taxpayers when the load begins. */
export class LoadedFleet {
  readonly world: World;
  readonly counts: Counts;
  readonly store: SimulatedStore;
  readonly #service: SimulatedService;
  readonly #counted: SimulatedStore;
  readonly #config: Config;
  readonly #processes: Process[] = [];
  /** How long each record has been unchanged when the load begins, in milliseconds. */
  readonly #agesMs: readonly number[];
  /** First an ended job of each taxpayer, then the jobs that are watched until they end. */
  readonly #jobs: { readonly id: string; readonly taxpayer: number; readonly endsAt: number }[];
  #trouble: { readonly fault: StoreFault; readonly until: number } | undefined;
  #lives = 0;

  constructor(
    private readonly load: Load,
    private readonly endsAt: number,
    seed: number,
  ) {
    this.world = new SilentWorld(seed);
    const { world } = this;
    this.counts = new Counts(() => world.now - day);
    this.store = new SimulatedStore(() => world.now);
    this.#counted = this.counts.ofStore(this.store);
    this.#agesMs = Array.from({ length: load.taxpayers }, () => world.between(0, 365 * day));
    const everyMs = load.jobMs / load.jobsUnderWay;
    const watched = Math.ceil((endsAt - day) / everyMs) + load.jobsUnderWay;
    const jobs = Array.from({ length: load.taxpayers + watched }, (_, n) => ({
      taxpayer: n % load.taxpayers,
      endsAt: n < load.taxpayers ? 0 : day + (n - load.taxpayers + 1) * everyMs,
    }));
    const plan = { taxpayers: load.taxpayers, jobs, slowestMs: load.slowestMs, quietFrom: Number.POSITIVE_INFINITY };
    const createdAt = (n: number) => beginsAt + day - (this.#agesMs[n] as number);
    this.#service = new SimulatedService(world, plan, this.counts, { createdAt, areSteady: true });
    this.#jobs = this.#service.jobs;
    this.#config = configOf(load.settings);
  }

  /** Reads each record during one day, at a random time for which it is still fresh at the end; then the load begins. */
  async prepare(): Promise<void> {
    const { world } = this;
    const reader = this.start(0);
    for (const one of reader.wired.sealed.stores) this.counts.ownKeys.add(one.keyOf(['forgets']));
    const { share, minMs, maxMs } = this.#config.tokens.freshness;
    for (const [n, ageMs] of this.#agesMs.entries()) {
      const freshMs = Math.min(ageMs, maxMs, Math.max(minMs, share * ageMs));
      world.time.at(day - world.between(0, freshMs), async () => {
        await reader.wired.broker.record(this.#taxpayer(n));
        await reader.wired.jobs.status(...this.#jobOf(n));
      });
    }
    await world.time.runUntil(day);
    await this.#end(reader);
    for (let node = 0; node < this.load.processes; node += 1) this.#open(node);
    for (let n = this.load.taxpayers; n < this.#jobs.length; n += 1) {
      const from = Math.max(day, (this.#jobs[n] as { endsAt: number }).endsAt - this.load.jobMs);
      if (from < this.endsAt) world.time.at(from, () => void this.#watch(this.#jobOf(n)));
    }
    this.#arrive();
  }

  /** Replaces one process after the other, within `lastsMs`; each has `drainMs` to finish. */
  deploy(lastsMs: number, drainMs = 10_000): void {
    const { world, load } = this;
    for (let node = 0; node < load.processes; node += 1) {
      world.after((node / load.processes) * lastsMs, () => {
        const before = this.#processes[node] as Process;
        this.#open(node);
        before.wired.stopWatches();
        world.after(drainMs, () => this.#end(before));
      });
    }
  }

  /** Makes the store unreachable for `forMs`. */
  cutStore(forMs: number): void {
    this.#trouble = { fault: 'away', until: this.world.now + forMs };
  }

  /** How many processes run without the store. */
  get alone(): number {
    return this.#processes.filter(({ store }) => store.degraded).length;
  }

  /** The number of entries in the store, and their bytes including the keys. */
  storeSize(): { readonly entries: number; readonly bytes: number } {
    const keys = this.store.list('');
    const bytes = keys.reduce((sum, key) => sum + key.length + (this.store.get(key)?.length ?? 0), 0);
    return { entries: keys.length, bytes };
  }

  start(node: number) {
    const { world } = this;
    const life = this.#lives++;
    const runtime = new NodeRuntime(world, { aheadMs: 0, rate: 1 }, world.seed * 4096 + life);
    const troubles = {
      of: () => (this.#trouble && world.now < this.#trouble.until ? this.#trouble.fault : undefined),
      nameOf: (key: string) => key,
    };
    const line = new StoreLine(world, node, runtime, this.#counted, troubles);
    const fetch = this.#service.fetchFor(node, life, runtime);
    const wiring = { world, node, runtime, line, config: this.#config, fetch, secret: () => 'secret-0' };
    return { runtime, ...wireProcess(wiring) };
  }

  #open(node: number): void {
    const process = this.start(node);
    this.#processes[node] = process;
    void process.store.start().then(() => process.wired.forgets.start());
  }

  async #end({ wired, store, runtime }: Process): Promise<void> {
    wired.stop();
    await store.close();
    runtime.isAlive = false;
  }

  /** Schedules the requests: Poisson arrivals, each at a random process. */
  #arrive(): void {
    const { world, load } = this;
    const pauseMs = (-Math.log(1 - world.random()) * 1000) / load.requestsPerSecond;
    if (world.now + pauseMs > this.endsAt) return;
    world.after(pauseMs, () => {
      this.#arrive();
      void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    const { world, load } = this;
    const { wired } = this.#any();
    const taxpayer = Math.floor(world.random() * load.taxpayers);
    const call = { holder: `caller-${Math.floor(world.random() * 1000)}` };
    const isJob = world.chance(load.jobShare);
    const isUnderWay = world.chance(load.jobsUnderWay / load.taxpayers);
    const answered = this.counts.asked();
    try {
      if (isJob) await wired.jobs.status(...(isUnderWay ? this.#watchedJob() : this.#jobOf(taxpayer)), undefined, call);
      else await wired.broker.record(this.#taxpayer(taxpayer), undefined, call);
      answered();
    } catch (error) {
      answered(error instanceof GatewayError ? error.code : String(error));
    }
  }

  /** A random job that is under way. */
  #watchedJob() {
    const { taxpayers, jobMs, jobsUnderWay } = this.load;
    const ended = Math.floor(((this.world.now - day) / jobMs) * jobsUnderWay);
    return this.#jobOf(taxpayers + ended + Math.floor(this.world.random() * jobsUnderWay));
  }

  /** Watches a job to its end. Like a client, subscribes again at another process when its process ends. */
  async #watch(job: readonly [TaxpayerId, JobId]): Promise<void> {
    const { world } = this;
    for (let isOver = false; !isOver && world.now < this.endsAt; ) {
      try {
        const watch = this.#any().wired.jobWatches.watch(job, { holder: 'watcher' });
        for await (const { job: seen } of watch) isOver = seen.status !== 'processing';
      } catch {
        // it subscribes again
      }
      if (!isOver) await new Promise((resolve) => world.after(world.between(500, 3000), () => resolve(undefined)));
    }
  }

  #any(): Process {
    return this.#processes[Math.floor(this.world.random() * this.#processes.length)] as Process;
  }

  #jobOf(n: number): readonly [TaxpayerId, JobId] {
    const { id, taxpayer } = this.#jobs[n] as { id: string; taxpayer: number };
    return [this.#taxpayer(taxpayer), id as JobId];
  }

  #taxpayer(n: number): TaxpayerId {
    return (this.#service.taxpayers[n] as { id: string }).id as TaxpayerId;
  }
}
