// npm run simulate: runs the fleet simulator over many seeds, shows one, or makes it shorter.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { real, replacePlatform } from '../support/platform.js';
import { type Plan, planOf } from './plan.js';
import { type Outcome, runPlan } from './runPlan.js';
import { shrink } from './shrink.js';
import { World } from './World.js';

const help = `npm run simulate -- [options]

  --seeds N        runs N seeds (default 2000)
  --minutes N      instead of --seeds: runs seeds until N minutes are over
  --from N         begins with seed N (default: another one each day)
  --seed N         runs seed N and prints what happened as a timeline
  --shrink N       finds the fewest steps with which seed N still breaks the same promise, and prints their timeline and plan
  --failed         runs the plans that have failed before, test/simulation/failedPlans.jsonl: add there what
                   --shrink printed, because another commit may plan otherwise; with --seed or --shrink: only that of the seed

The last lines tell the seeds that failed, if any. Exit code 1 when one failed.
`;
const text = { type: 'string' } as const;
const { values } = parseArgs({
  options: {
    ...{ seeds: text, minutes: text, from: text, seed: text, shrink: text },
    ...{ failed: { type: 'boolean' }, help: { type: 'boolean' } },
  },
});

replacePlatform(() => {
  if (World.running === undefined) throw new Error('No process runs that could ask for the time or a random number');
  return World.running;
});

if (values.help) process.stdout.write(help);
else if (values.seed !== undefined) show(await runPlan(planNamed(values.seed)));
else if (values.shrink !== undefined) {
  const { plan, outcome } = await shrink(planNamed(values.shrink));
  show(outcome);
  console.log(JSON.stringify(plan));
} else if (values.failed) console.log(`${await runAll(failedPlans())} of the plans that have failed before`);
else {
  const from = Number(values.from ?? Math.floor(real.now() / 86_400_000) * 10_000);
  const beganAt = real.monotonicNow();
  const seconds = () => (real.monotonicNow() - beganAt) / 1000;
  const outcome = await runAll(plansFrom(from, seconds));
  console.log(`${outcome} from seed ${from} in ${seconds().toFixed(1)} s`);
}

function* plansFrom(from: number, seconds: () => number): Generator<Plan> {
  const { seeds = '2000', minutes } = values;
  const isEnough = (count: number) => (minutes ? seconds() >= 60 * Number(minutes) : count >= Number(seeds));
  for (let count = 0; !isEnough(count); count += 1) yield planOf(from + count);
}

/** Runs plans, tells what fails, and gives their number and that of the failures. */
async function runAll(plans: Iterable<Plan>) {
  let [count, failed] = [0, 0];
  for (const plan of plans) {
    const [finding] = (await runPlan(plan)).findings;
    count += 1;
    if (finding === undefined) continue;
    failed += 1;
    process.exitCode = 1;
    console.log(`seed ${plan.seed}: ${finding.check}: ${finding.what}`);
  }
  return `${count} ran, ${failed} failed`;
}

function failedPlans(): readonly Plan[] {
  const lines = readFileSync(new URL('./failedPlans.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n');
  return lines.map((line) => JSON.parse(line) as Plan);
}

function planNamed(seed: string): Plan {
  const kept = values.failed ? failedPlans().find((plan) => plan.seed === Number(seed)) : planOf(Number(seed));
  if (kept === undefined) throw new Error(`No plan of seed ${seed} is kept`);
  return kept;
}

function show({ lines, findings }: Outcome) {
  console.log(lines.join('\n'));
  for (const { check, at, what } of findings) console.log(`FOUND at ${at.toFixed(3)}: ${check}: ${what}`);
  if (findings.length > 0) process.exitCode = 1;
}
