import { parentPort, workerData } from 'node:worker_threads';
import { type Plan, planOf, timesOf } from './plan.js';
import { type Outcome, run } from './runSeed.js';

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
  | { readonly do: 'these'; readonly seeds: readonly number[] }
  | { readonly do: 'seed'; readonly seed: number }
  | { readonly do: 'shrink'; readonly seed: number };

const toldEvery = 25;
const work = workerData as Work;
let untold = { ran: 0, hashes: 0 };
const tell = (message: object) => parentPort?.postMessage(message);

switch (work.do) {
  case 'seeds':
    await runSeeds(work);
    break;
  case 'these':
    for (const seed of work.seeds) await runOne(seed);
    break;
  case 'seed':
    tell(await run(planOf(work.seed)));
    break;
  case 'shrink':
    tell(await shrink(planOf(work.seed)));
    break;
}

async function runSeeds({ from, every, count, untilFailure }: Extract<Work, { do: 'seeds' }>): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const { findings } = await runOne(from + n * every);
    if (findings.length > 0 && untilFailure) return;
  }
}

/** Tells of a seed that failed at once, of others now and then. */
async function runOne(seed: number): Promise<Outcome> {
  const outcome = await run(planOf(seed));
  const { findings, hash } = outcome;
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
