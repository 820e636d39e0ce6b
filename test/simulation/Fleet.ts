import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/Sealer.js';
import type { Config } from '../../src/config/config.js';
import { Secret } from '../../src/config/Secret.js';
import type { JobId, TaxpayerId } from '../../src/datasources/identifiers.js';
import { type JobView, jobKey } from '../../src/datasources/RefreshJobs.js';
import { refusalName, type TokenView } from '../../src/datasources/tokenAnswer.js';
import type { GatewayError } from '../../src/errors/errors.js';
import type { Asked, Auditor } from './Auditor.js';
import { type Clock, NodeRuntime } from './NodeRuntime.js';
import type { Plan, Step, StoreFault } from './plan.js';
import { contentOf, type SimulatedJob, SimulatedService } from './SimulatedService.js';
import { SimulatedStore } from './SimulatedStore.js';
import { StoreLine, type StoreTroubles } from './StoreLine.js';
import type { World } from './World.js';
import { configOf, wireProcess } from './wireProcess.js';

type Work = (asked: Asked) => Promise<Partial<Asked>>;

const ofRecord = ({ value: { record } }: TokenView) => contentOf(record.name, record.metadata?.['answer']);
const ofJob = ({ value: { job } }: JobView) => `${job.status}, ${job.name}`;

const defaults = configOf({ JOB_POLL_MAX_MS: '5000' });

/** A process from its start to its crash. Its successor on the same node is a new life. */
interface Process extends ReturnType<typeof wireProcess> {
  readonly life: number;
  readonly runtime: NodeRuntime;
  isUp: boolean;
}

/** A fleet of gateways: the real classes, wired as the product wires them, over a simulated world. */
export class Fleet {
  readonly service: SimulatedService;
  readonly store: SimulatedStore;
  readonly processes: Process[] = [];
  readonly #names = new Map<string, string>();
  readonly #storeFaults: { readonly fault: StoreFault; readonly node: number | undefined; readonly until: number }[] =
    [];
  readonly #troubles: StoreTroubles;
  readonly #config: Config;
  readonly #clocks: Clock[];
  #secret = 0;
  #lives = 0;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly auditor: Auditor,
  ) {
    this.service = new SimulatedService(world, plan, auditor);
    this.store = new SimulatedStore(() => world.now);
    this.#clocks = plan.clocks.map((clock) => ({ ...clock }));
    this.#troubles = {
      of: (node) => this.#storeFaults.findLast((each) => world.now < each.until && (each.node ?? node) === node)?.fault,
      nameOf: (key) => this.#nameOf(key),
    };
    this.#config = {
      ...defaults,
      freshness: { share: 0, minMs: plan.freshMs, maxMs: plan.freshMs },
      TOKEN_BUDGET_PER_HOUR: plan.budgetPerHour,
      TOKEN_BUDGET_CALLER_SHARE: 1,
      budgetWatchShare: 1,
    };
    for (let node = 0; node < plan.nodes; node += 1) this.#start(node);
  }

  /** Performs one step of the plan. */
  do(step: Step, n: number): void {
    const { world, auditor } = this;
    const until = world.now + ('forMs' in step ? step.forMs : 0);
    world.tell('plan', JSON.stringify(step));
    switch (step.do) {
      case 'rotate-token':
        this.service.taxpayer(step.taxpayer).token += 1;
        auditor.rotations.push({ taxpayer: step.taxpayer, at: world.now });
        return;
      case 'change-status':
        this.service.taxpayer(step.taxpayer).change += 1;
        return;
      case 'rotate-key':
        this.#rotateSecret();
        return;
      case 'crash':
        this.#crash(step.node, step.forMs);
        return;
      case 'pause': {
        const { runtime } = this.#process(step.node);
        runtime.pausedUntil = Math.max(runtime.pausedUntil, until);
        auditor.disturb({ kind: 'pause', from: world.now, until: until + 1000, node: step.node });
        return;
      }
      case 'jump':
        this.#clock(step.node).aheadMs += step.byMs;
        return;
      case 'store':
        this.#storeFaults.push({ fault: step.fault, node: step.node, until });
        auditor.disturb({ kind: 'store', from: world.now, until: until + 2500 });
        return;
      case 'empty-store':
        auditor.disturb({ kind: 'store-loss', from: world.now, until: world.now });
        this.store.empty();
        return;
      case 'fail-over':
        auditor.disturb({ kind: 'store-loss', from: world.now - step.lagMs, until: world.now });
        this.store.failOver(step.lagMs);
        return;
      case 'service':
        this.service.misbehave(step.fault, step.forMs);
        return;
      case 'forget':
        this.#forget(step.taxpayer, step.isSlow ?? false);
        return;
      default:
        this.#process(step.node).runtime.receive(0, () => void this.#ask(step, n));
    }
  }

  /** Asks every process for every record and job, and repeats the links with a key. */
  askAll(): void {
    for (let node = 0; node < this.plan.nodes; node += 1) {
      for (let n = 0; n < this.plan.taxpayers; n += 1) this.do({ at: 0, do: 'read', node, taxpayer: n }, n);
      for (let n = 0; n < this.plan.jobs.length; n += 1) this.do({ at: 0, do: 'job', node, job: n }, n);
    }
    const links = this.plan.steps.filter((step) => step.do === 'link' && step.key !== undefined);
    for (const [n, step] of links.entries()) this.do(step, n);
  }

  async stop(): Promise<void> {
    for (const { wired, store, runtime } of this.processes) {
      runtime.run(() => wired.stop());
      await runtime.run(() => store.close());
    }
  }

  get isDegraded(): boolean {
    return this.processes.some(({ state, runtime }) => runtime.isAlive && state.isDegraded);
  }

  async #ask(step: Extract<Step, { readonly node: number }>, n: number) {
    const { isUp, wired, life } = this.#process(step.node);
    if (!isUp) return;
    const call = { holder: `caller-${n % 2}` };
    const ask = (index: number, work: Work, more: Partial<Asked> = {}) => {
      const what = step.do as Asked['what'];
      return this.#answer(this.auditor.begin({ what, node: step.node, life, index, ...more }), work);
    };
    switch (step.do) {
      case 'read': {
        const { taxpayer, maxAgeMs } = step;
        const work = async () => {
          const view = await wired.broker.record(this.#taxpayer(taxpayer), call, maxAgeMs);
          return { content: ofRecord(view), isStale: view.stale === true };
        };
        return ask(taxpayer, work, maxAgeMs === undefined ? {} : { maxAgeMs });
      }
      case 'job':
        return ask(step.job, async () => ({
          content: ofJob(await wired.jobs.status(...this.#job(step.job), call)),
        }));
      case 'link': {
        const { key, input } = step;
        const mark = `${key ?? `without a key ${n}`}, input ${input}`;
        const work = async () => {
          const idempotency = key === undefined ? undefined : (['caller', key] as const);
          const { link } = await wired.links.create({ metadata: { mark } }, idempotency, call);
          return { content: link.id };
        };
        return ask(0, work, { key, mark });
      }
      case 'watch-job': {
        const { job, forMs: maxMs } = step;
        const watch = () => wired.jobs.watches.watch(jobKey(...this.#job(job)), { ...call, maxMs });
        return ask(job, (asked) => this.#follow(asked, watch(), ofJob), { maxMs });
      }
      case 'watch-record': {
        const { taxpayer, forMs: maxMs } = step;
        const watch = () => wired.broker.watches.watch(this.#taxpayer(taxpayer), { ...call, maxMs });
        return ask(taxpayer, (asked) => this.#follow(asked, watch(), ofRecord), { maxMs });
      }
    }
  }

  async #follow<View>(asked: Asked, watch: AsyncIterable<View>, content: (view: View) => string) {
    for await (const view of watch) {
      asked.content = content(view);
      this.world.tell(`node ${asked.node}`, `shows ${asked.what} ${asked.index}: ${asked.content}`);
      this.auditor.check('answered', asked);
    }
    return {};
  }

  async #answer(asked: Asked, work: Work) {
    const name = `${asked.what} ${asked.key ?? asked.index}`;
    this.world.tell(`node ${asked.node}`, `asked ${name}`);
    try {
      Object.assign(asked, await work(asked));
    } catch (error) {
      asked.error = (error as GatewayError).code ?? String(error);
    }
    asked.endedAt = this.world.now;
    const answer = asked.error ?? asked.content ?? 'the end';
    this.world.tell(`node ${asked.node}`, `answers ${name}: ${answer}${asked.isStale ? ' (stale)' : ''}`);
    this.auditor.check('answered', asked);
  }

  #start(node: number) {
    const { world, plan } = this;
    const life = this.#lives++;
    const runtime = new NodeRuntime(world, this.#clock(node), plan.seed * 64 + life);
    const line = new StoreLine(world, node, runtime, this.store, this.#troubles);
    const { store, state, wired, rotate } = runtime.run(() =>
      wireProcess({
        ...{ world, node, line, config: this.#config },
        fetch: this.service.fetchFor(node, life, runtime),
        secret: () => `secret-${this.#secret}`,
      }),
    );
    const rotateAndLearn = () => {
      rotate();
      this.#learnNames(wired.sealed);
    };
    const process: Process = { life, runtime, store, state, wired, rotate: rotateAndLearn, isUp: false };
    this.processes[node] = process;
    this.#learnNames(wired.sealed);
    world.tell(`node ${node}`, `starts its life ${life}`);
    const begin = async () => {
      if (plan.looksForForgets) await wired.forgets.start();
      process.isUp = true;
    };
    world.after(0, () => void runtime.run(begin));
  }

  #crash(node: number, forMs: number) {
    const { world, auditor } = this;
    const { runtime, life } = this.#process(node);
    if (!runtime.isAlive) return;
    runtime.isAlive = false;
    auditor.disturb({ kind: 'crash', from: world.now, until: world.now + forMs, node });
    for (const asked of auditor.asked) {
      if (asked.life === life && asked.endedAt === undefined)
        Object.assign(asked, { endedAt: world.now, error: 'crashed' });
    }
    for (const call of auditor.calls) {
      if (call.life === life && call.endedAt === undefined) call.endedAt = world.now;
    }
    world.after(forMs, () => this.#start(node));
  }

  #rotateSecret() {
    const { world } = this;
    this.#secret += 1;
    this.auditor.disturb({ kind: 'key', from: world.now, until: Infinity });
    this.service.secret = `secret-${this.#secret}`;
    for (const { runtime, rotate } of this.processes) runtime.receive(world.between(0, 3000), rotate);
  }

  /** As the `forget` command does it: with a connection of its own to the store, and without time limit and circuit. */
  #forget(taxpayer: number, isSlow: boolean) {
    const { world, auditor } = this;
    const runtime = new NodeRuntime(world, { aheadMs: 0, rate: 1 }, this.plan.seed * 64 + this.#lives++);
    const troubles = isSlow ? { ...this.#troubles, of: () => 'slow' as const } : this.#troubles;
    const store = new StoreLine(world, -1, runtime, this.store, troubles);
    const secret = new Secret(`secret-${this.#secret}`);
    const sealer = new Sealer({ ...this.#config, UPSTREAM_CLIENT_SECRET: secret });
    const sealed = new SealedStore({ store, sealer, ...this.#config });
    const subject = this.#taxpayer(taxpayer);
    const id = runtime.randomUUID();
    const forgotten: (typeof auditor.forgotten)[number] = { taxpayer, begunAt: world.now };
    auditor.forgotten.push(forgotten);
    const disturbance = auditor.disturb({ kind: 'forget', from: world.now, until: Infinity, taxpayer });
    const work = async () => {
      await sealed.put(refusalName(subject), '', 1);
      await sealed.forget({ id, subject });
      forgotten.doneAt = world.now;
      // Each process erases once more after a store fault, and a paused process erases when it wakes.
      const isRepeated = this.plan.steps.some((step) => step.do === 'store' || step.do === 'pause');
      disturbance.until = isRepeated ? Infinity : world.now + 5000;
      world.tell('operator', `has forgotten ${subject}`);
    };
    runtime.run(work).catch((error: Error) => world.tell('operator', `could not forget ${subject}: ${error.message}`));
  }

  #process(node: number): Process {
    return this.processes[node] as Process;
  }

  #clock(node: number): Clock {
    return this.#clocks[node] as Clock;
  }

  #taxpayer(n: number): TaxpayerId {
    return this.service.taxpayer(n).id as TaxpayerId;
  }

  #job(n: number): readonly [TaxpayerId, JobId] {
    const { id, taxpayer } = this.service.jobs[n] as SimulatedJob;
    return [this.#taxpayer(taxpayer), id as JobId];
  }

  /** Learns the keys of the store, to show readable names in the timeline. */
  #learnNames(sealed: SealedStore) {
    this.#names.set(sealed.keyOf(['forgotten']), 'forgotten');
    for (const { id } of this.service.taxpayers) {
      this.#names.set(sealed.placeOf('token', id).record, id);
      this.#names.set(sealed.keyOf(refusalName(id)), `refusal of ${id}`);
    }
    for (const key of ['key-0', 'key-1'])
      this.#names.set(sealed.keyOf(['client-link', JSON.stringify(['caller', key])]), `link of ${key}`);
  }

  #nameOf(key: string) {
    return this.#names.get(key) ?? (key.length > 12 ? `${key.slice(0, 8)}…` : key);
  }
}
