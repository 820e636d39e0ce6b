import { parentPort, workerData } from 'node:worker_threads';
import { type Plan, planOf, timesOf } from './plan.js';
import { type Outcome, run as runPlan } from './runSeed.js';
import { type Version, version } from './wireProcess.js';

/** What this thread is told to do. */
export type Work =
  /** Runs the seeds from `from` on, each `every`-th, until it has run `count` or, if told, until one fails. */
  | {
      readonly do: 'seeds';
      readonly from: number;
      readonly every: number;
      readonly count: number;
      readonly untilFailure: boolean;
    }
  | { readonly do: 'these'; readonly plans: readonly Plan[] }
  /** Without a plan, that of the seed. */
  | { readonly do: 'show' | 'shrink' | 'plan'; readonly seed: number; readonly plan?: Plan };

const toldEvery = 25;
const { beside, ...work } = workerData as Work & { readonly beside?: string };
/** Another version runs beside this one: the file it was bundled into. */
const versions = beside === undefined ? undefined : [((await import(beside)) as { version: Version }).version, version];
const run = (plan: Plan) => runPlan(plan, versions);
let untold = { ran: 0, hashes: 0 };
const tell = (message: object) => parentPort?.postMessage(message);

switch (work.do) {
  case 'seeds':
    await runSeeds(work);
    break;
  case 'these':
    for (const plan of work.plans) await runOne(plan);
    break;
  case 'show':
    tell(await run(work.plan ?? planOf(work.seed)));
    break;
  case 'shrink':
    tell(await shrink(work.plan ?? planOf(work.seed)));
    break;
  case 'plan':
    tell({ plan: planOf(work.seed) });
    break;
}

async function runSeeds({ from, every, count, untilFailure }: Extract<Work, { do: 'seeds' }>): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const { findings } = await runOne(planOf(from + n * every));
    if (findings.length > 0 && untilFailure) return;
  }
}

/** Tells of a seed that failed at once, of others now and then. */
async function runOne(plan: Plan): Promise<Outcome> {
  const outcome = await run(plan);
  const { findings, hash, seed } = outcome;
  untold = { ran: untold.ran + 1, hashes: (untold.hashes + Number.parseInt(hash.slice(0, 12), 16)) % 2 ** 48 };
  if (findings.length > 0) tell({ failed: seed, finding: findings[0], hash });
  if (untold.ran === toldEvery || findings.length > 0) flush();
  return outcome;
}

process.once('exit', flush);

function flush(): void {
  tell(untold);
  untold = { ran: 0, hashes: 0 };
}

/** The same with as few steps as still break the same promise. */
async function shrink(plan: Plan): Promise<Outcome & { readonly steps: number; readonly stepsBefore: number }> {
  const first = await run(plan);
  const check = first.findings[0]?.check;
  let best = { plan, outcome: first };
  const attempt = async (steps: Plan['steps']) => {
    const smaller = { ...plan, steps, ...timesOf(steps) };
    const outcome = await run(smaller);
    const fails = outcome.findings.some((finding) => finding.check === check);
    if (fails) best = { plan: smaller, outcome };
    return fails;
  };
  for (let size = Math.ceil(plan.steps.length / 2); check !== undefined && size >= 1; ) {
    let isSmaller = false;
    for (let at = 0; at < best.plan.steps.length; ) {
      const { steps } = best.plan;
      if (await attempt(steps.filter((_, n) => n < at || n >= at + size))) isSmaller = true;
      else at += size;
    }
    if (!isSmaller || size > 1) size = size === 1 ? (isSmaller ? 1 : 0) : Math.floor(size / 2);
  }
  return { ...best.outcome, steps: best.plan.steps.length, stepsBefore: plan.steps.length };
}
