import { seeded } from '../support/seeded.js';
import { times } from '../support/times.js';

/** One event of a simulation; `at` is in milliseconds since its begin. The plan and its seed decide everything else. */
export type Step = { readonly at: number } & (
  | { readonly do: 'read'; readonly node: number; readonly taxpayer: number; readonly maxAgeMs?: number }
  | { readonly do: 'job'; readonly node: number; readonly job: number }
  | { readonly do: 'watch-job'; readonly node: number; readonly job: number; readonly forMs: number }
  | { readonly do: 'watch-record'; readonly node: number; readonly taxpayer: number; readonly forMs: number }
  | { readonly do: 'link'; readonly node: number; readonly key: string | undefined; readonly input: number }
  | { readonly do: 'forget'; readonly taxpayer: number; readonly isSlow?: boolean }
  | { readonly do: 'rotate-token'; readonly taxpayer: number }
  | { readonly do: 'change-status'; readonly taxpayer: number }
  | { readonly do: 'rotate-key' }
  | { readonly do: 'crash'; readonly node: number; readonly forMs: number }
  | { readonly do: 'pause'; readonly node: number; readonly forMs: number }
  | { readonly do: 'jump'; readonly node: number; readonly byMs: number }
  | { readonly do: 'store'; readonly fault: StoreFault; readonly node: number | undefined; readonly forMs: number }
  | { readonly do: 'empty-store' }
  | { readonly do: 'fail-over'; readonly lagMs: number }
  | { readonly do: 'service'; readonly fault: ServiceFault; readonly forMs: number }
);

export type StoreFault = 'away' | 'slow' | 'lossy' | 'read-only';
export type ServiceFault = '5xx' | 'slow' | 'silent' | 'reset' | 'invalid' | '429' | '401' | 'foreign';

export interface Plan {
  readonly seed: number;
  readonly nodes: number;
  readonly taxpayers: number;
  /** The owner of each job, and when it ends, in milliseconds since the begin. */
  readonly jobs: readonly { readonly taxpayer: number; readonly endsAt: number }[];
  readonly freshMs: number;
  readonly budgetPerHour: number;
  /** Per node, how far its clock is ahead of the true time, and how fast it runs. */
  readonly clocks: readonly { readonly aheadMs: number; readonly rate: number }[];
  /** Longest latency of the service without a fault, in milliseconds. */
  readonly slowestMs: number;
  /** Whether processes watch the list of erasures. */
  readonly looksForForgets: boolean;
  readonly steps: readonly Step[];
  /** When the last step and the last fault are over. */
  readonly quietFrom: number;
  /** When everything has to be healthy again. */
  readonly healthyFrom: number;
}

/** How long after the last fault the fleet may take to be healthy again, in milliseconds. */
function healingMsOf(steps: readonly Step[]) {
  const has = (...kinds: readonly Step['do'][]) => steps.some((step) => kinds.includes(step.do));
  // When a taxpayer's new token is refused too, a cool-down follows, from the end of the second slow call.
  if (has('rotate-token')) return 80_000;
  // Calls that a pause let run out open a breaker, which waits for a trial for 20 s: who asks beside the trial is refused.
  return has('service', 'store', 'rotate-key') ? 45_000 : 25_000;
}

/** The plan of a seed. Most seeds have few kinds of trouble, so that the strict checks apply to what happens. */
export function planOf(seed: number): Plan {
  const random = seeded(seed);
  const pick = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
  const chance = (share: number) => random() < share;
  const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;

  const nodes = oneOf([1, 2, 2, 3, 3, 4]);
  const lastsMs = oneOf([3000, 10_000, 30_000, 90_000]);
  const freshMs = oneOf([5000, 20_000, 900_000]);
  const trouble = troubleOf(chance);
  const isCrowded = chance(trouble.budget ? 0.6 : 0.06);
  const taxpayers = isCrowded ? pick(8, 24) : pick(1, 3);
  const jobs = times(pick(1, 2), () => ({
    taxpayer: pick(0, taxpayers - 1),
    endsAt: pick(0, lastsMs),
  }));
  const steps: Step[] = [];
  const node = () => pick(0, nodes - 1);
  const taxpayer = () => pick(0, taxpayers - 1);
  const job = () => pick(0, jobs.length - 1);
  const within = () => random() * lastsMs;
  /** A time shortly after another step, or any time. */
  const near = () => {
    const { at } = steps.length > 0 && chance(0.6) ? oneOf(steps) : { at: within() };
    return Math.min(lastsMs, at + (chance(0.7) ? random() * 400 : random() * 4000));
  };

  const asks = {
    record: chance(0.85),
    job: chance(0.7),
    watchJob: chance(0.4),
    watchRecord: chance(0.3),
    link: chance(0.35),
  };
  for (let burst = pick(2, 6); burst > 0; burst -= 1) {
    const at = within();
    const spread = oneOf([0, 5, 50, 500, 3000]);
    const [who, what] = [taxpayer(), job()];
    for (let n = pick(1, 5); n > 0; n -= 1) {
      const when = at + random() * spread;
      if (asks.record && chance(0.6)) {
        const maxAgeMs = chance(0.2) ? 60_000 : undefined;
        steps.push({ at: when, do: 'read', node: node(), taxpayer: who, ...(maxAgeMs && { maxAgeMs }) });
      }
      if (asks.job && chance(0.6)) steps.push({ at: when, do: 'job', node: node(), job: what });
      if (asks.watchJob && chance(0.3)) {
        steps.push({ at: when, do: 'watch-job', node: node(), job: what, forMs: oneOf([2000, 20_000, 600_000]) });
      }
      if (asks.watchRecord && chance(0.2)) {
        steps.push({
          at: when,
          do: 'watch-record',
          node: node(),
          taxpayer: who,
          forMs: oneOf([2000, 20_000, 600_000]),
        });
      }
      if (asks.link && chance(0.4)) {
        const key = chance(0.8) ? `key-${pick(0, 1)}` : undefined;
        steps.push({ at: when, do: 'link', node: node(), key, input: chance(0.9) ? 0 : 1 });
      }
    }
  }
  if (isCrowded) {
    const [at, spread] = [within(), oneOf([50, 3000, lastsMs])];
    for (let n = 0; n < taxpayers; n += 1)
      steps.push({ at: at + random() * spread, do: 'read', node: node(), taxpayer: n });
  }
  // Repeats some reads shortly before or after their answers expire.
  if (freshMs <= 20_000 && chance(0.5)) {
    for (const step of [...steps]) {
      if (step.do !== 'read' || chance(0.7)) continue;
      steps.push({ ...step, at: step.at + freshMs * (0.5 + 0.6 * random()), node: node() });
    }
  }
  const several = (isWanted: boolean, most: number, newStep: () => Step) => {
    if (isWanted) for (let n = pick(1, most); n > 0; n -= 1) steps.push(newStep());
  };
  several(trouble.rotations, 3, () => ({ at: near(), do: 'rotate-token', taxpayer: taxpayer() }));
  several(chance(0.3), 2, () => ({ at: near(), do: 'change-status', taxpayer: taxpayer() }));
  several(trouble.forgets, 2, () => ({ at: near(), do: 'forget', taxpayer: taxpayer(), isSlow: chance(0.4) }));
  // Reads during a slow erasure.
  for (const step of [...steps]) {
    if (step.do !== 'forget' || !step.isSlow) continue;
    for (let n = pick(0, 4); n > 0; n -= 1)
      steps.push({ at: step.at + random() * 5000, do: 'read', node: node(), taxpayer: step.taxpayer });
  }
  several(trouble.keys, 2, () => ({ at: near(), do: 'rotate-key' }));
  several(trouble.crashes, 3, () => ({ at: near(), do: 'crash', node: node(), forMs: oneOf([10, 1000, 5000]) }));
  several(trouble.pauses, 2, () => ({
    at: near(),
    do: 'pause',
    node: node(),
    forMs: oneOf([200, 2000, 4000, 15_000]),
  }));
  several(trouble.jumps, 2, () => ({
    at: near(),
    do: 'jump',
    node: node(),
    byMs: oneOf([-30_000, -2000, 2000, 30_000]),
  }));
  several(trouble.store, 3, () => {
    const fault = oneOf<StoreFault>(['away', 'slow', 'lossy', 'lossy', 'read-only']);
    const whose = chance(0.4) ? node() : undefined;
    return { at: near(), do: 'store', fault, node: whose, forMs: oneOf([20, 300, 1500, 8000]) };
  });
  several(trouble.storeLoss, 2, () =>
    chance(0.5) ? { at: near(), do: 'empty-store' } : { at: near(), do: 'fail-over', lagMs: oneOf([5, 100, 2000]) },
  );
  several(trouble.service, 3, () => {
    const kinds: readonly ServiceFault[] = ['5xx', 'slow', 'silent', 'reset', 'invalid', '429', '401', 'foreign'];
    return { at: near(), do: 'service', fault: oneOf(kinds), forMs: oneOf([20, 500, 3000, 10_000]) };
  });
  const conditions = {
    budgetPerHour: trouble.budget ? oneOf([3, 8, 20, 40]) : 0,
    clocks: times(nodes, () =>
      chance(0.5) ? { aheadMs: 0, rate: 1 } : { aheadMs: pick(-400, 400), rate: 1 + pick(-3, 3) / 10_000 },
    ),
    slowestMs: oneOf([20, 200, 1500, 4500]),
    looksForForgets: trouble.forgets || chance(0.1),
  };
  steps.sort((one, other) => one.at - other.at);
  return { ...{ seed, nodes, taxpayers, jobs, steps, freshMs }, ...conditions, ...timesOf(steps) };
}

/** Which kinds of trouble a plan has. A third of the seeds have no fault. */
function troubleOf(chance: (share: number) => boolean) {
  const any = chance(0.67);
  const some = (share: number) => chance(share) && any;
  return {
    rotations: chance(0.4),
    forgets: chance(0.2),
    keys: chance(0.1),
    budget: chance(0.15),
    crashes: some(0.35),
    pauses: some(0.2),
    jumps: some(0.15),
    store: some(0.4),
    storeLoss: some(0.12),
    service: some(0.35),
  };
}

export function timesOf(steps: readonly Step[]): Pick<Plan, 'quietFrom' | 'healthyFrom'> {
  const ends = steps.map((step) => step.at + ('forMs' in step && !step.do.startsWith('watch') ? step.forMs : 0));
  const quietFrom = Math.max(0, ...ends);
  return { quietFrom, healthyFrom: quietFrom + healingMsOf(steps) };
}
