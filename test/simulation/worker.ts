import { parentPort, workerData } from 'node:worker_threads';
import { replacePlatform } from '../support/platform.js';
import { type Plan, planOf, timesOf } from './plan.js';
import { type Outcome, run } from './runSeed.js';
import { World } from './World.js';

/** The work of this thread, as `main.js` orders it. */
export type Work =
  /** Runs `count` seeds: `from` and every `every`-th after it. */
  | {
      readonly do: 'seeds';
      readonly from: number;
      readonly every: number;
      readonly count: number;
    }
  | { readonly do: 'these'; readonly plans: readonly Plan[] }
  /** Without `plan`, uses the plan of the seed. */
  | { readonly do: 'show' | 'shrink' | 'plan'; readonly seed: number; readonly plan?: Plan };

const toldEvery = 25;
const work = workerData as Work;
let untold = { ran: 0, hashes: 0 };
const tell = (message: object) => parentPort?.postMessage(message);
replacePlatform(() => World.running ?? fail());

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

async function runSeeds({ from, every, count }: Extract<Work, { do: 'seeds' }>): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await runOne(planOf(from + n * every));
  }
}

/** Reports a failed seed at once, and progress once per {@link toldEvery} seeds. */
async function runOne(plan: Plan): Promise<Outcome> {
  const outcome = await run(plan);
  const { findings, hash, seed } = outcome;
  untold = { ran: untold.ran + 1, hashes: (untold.hashes + Number.parseInt(hash.slice(0, 12), 16)) % 2 ** 48 };
  if (findings.length > 0) tell({ failed: seed, finding: findings[0], hash });
  if (untold.ran === toldEvery || findings.length > 0) flush();
  return outcome;
}

process.once('exit', flush);

function fail(): never {
  throw new Error('No process runs now that could ask for the time or a random number');
}

function flush(): void {
  tell(untold);
  untold = { ran: 0, hashes: 0 };
}

/** Removes steps as long as the same check still fails; returns the outcome of the smallest plan. */
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
