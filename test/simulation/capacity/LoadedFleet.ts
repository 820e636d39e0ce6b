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

/** What the fleet is and has to do. All of it is for the sample: `sample` times as much happens in the whole. */
export interface Load {
  readonly processes: number;
  /** Those that are looked at. */
  readonly taxpayers: number;
  readonly requestsPerSecond: number;
  /** Of the requests; the others ask for a token record. */
  readonly jobShare: number;
  /** Refresh jobs that are under way at any time, each with one watcher. */
  readonly jobsUnderWay: number;
  readonly jobMs: number;
  /** Slowest answer of the service, in milliseconds; the mean is half of it. */
  readonly slowestMs: number;
  readonly settings: Readonly<Record<string, string>>;
}

type Process = ReturnType<LoadedFleet['start']>;

/** The world without its record of what happened, which would not fit into memory. */
class SilentWorld extends World {
  override tell(): void {}
}

/** Gateways of the real classes under an even load. Begins with a store that has the records of all taxpayers. */
export class LoadedFleet {
  readonly world: World;
  readonly counts: Counts;
  readonly store: SimulatedStore;
  readonly #service: SimulatedService;
  readonly #counted: SimulatedStore;
  readonly #config: Config;
  readonly #processes: Process[] = [];
  /** For how long each record had been unchanged when the load begins. */
  readonly #agesMs: readonly number[];
  /** First one of each taxpayer that has ended, then those that will be watched until they end. */
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

  /** Lets the day pass in which each record was read last, at any time of those for which it is fresh; then the load begins. */
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

  /** The store cannot be reached for a time. */
  cutStore(forMs: number): void {
    this.#trouble = { fault: 'away', until: this.world.now + forMs };
  }

  /** Processes that go on without the store. */
  get alone(): number {
    return this.#processes.filter(({ store }) => store.degraded).length;
  }

  /** How many entries the store has, and their bytes with their keys. */
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

  /** Requests come in independently of each other, by any process. */
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

  /** One of those that are under way. */
  #watchedJob() {
    const { taxpayers, jobMs, jobsUnderWay } = this.load;
    const ended = Math.floor(((this.world.now - day) / jobMs) * jobsUnderWay);
    return this.#jobOf(taxpayers + ended + Math.floor(this.world.random() * jobsUnderWay));
  }

  /** As a client does: when its process ends, it subscribes again at another. */
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
