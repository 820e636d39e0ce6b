import { Auditor, type Finding } from './Auditor.js';
import { checks } from './checks.js';
import { Fleet } from './Fleet.js';
import { type Plan, timesOf } from './plan.js';
import { World } from './World.js';

export interface Outcome {
  readonly seed: number;
  readonly findings: readonly Finding[];
  readonly lines: readonly string[];
  readonly hash: string;
}

/** How long the last requests may take before the fleet is stopped all the same, in milliseconds. */
const lastWorkMs = 100_000;
/** When the first step of a plan runs, in milliseconds: all processes are up by then. */
const begins = 100;

/** Simulates the plan, then a quiet time in which the fleet must recover: for a kept plan, as long as it takes by now. */
export async function run(given: Plan): Promise<Outcome> {
  const plan = { ...given, ...timesOf(given.steps) };
  const world = new World(plan.seed);
  const auditor = new Auditor(world, plan);
  auditor.use(checks);
  const fleet = new Fleet(world, plan, auditor);
  for (const [n, step] of plan.steps.entries()) world.at(begins + step.at, () => fleet.do(step, n));
  await world.time.runUntil(begins + plan.healthyFrom);
  auditor.beforeEnd();
  if (fleet.isDegraded) auditor.find('theStoreIsUsedAgain', 'a process still goes on alone');
  fleet.askAll();
  const isAsking = () => auditor.asked.some(({ what, endedAt }) => endedAt === undefined && !what.startsWith('watch'));
  do await world.time.runUntil(world.now + 1000);
  while (isAsking() && world.now < begins + plan.healthyFrom + lastWorkMs);
  const polled = fleet.processes.reduce(
    (sum, { wired }) => sum + wired.jobWatches.polled + wired.recordWatches.polled,
    0,
  );
  const watched = auditor.asked.filter(({ what, endedAt }) => what.startsWith('watch') && endedAt === undefined).length;
  if (polled > watched) auditor.find('noPollWithoutWatcher', `${polled} keys are polled for ${watched} watchers`);
  auditor.isStopping = true;
  await fleet.stop();
  await world.time.runUntil(world.now + 3000);
  auditor.atEnd({
    timers: fleet.processes.reduce((sum, { runtime }) => sum + runtime.timers.size, 0),
    unfinished: auditor.asked.filter(({ endedAt }) => endedAt === undefined),
    polled: fleet.processes.reduce((sum, { wired }) => sum + wired.jobWatches.polled + wired.recordWatches.polled, 0),
  });
  return { seed: plan.seed, findings: auditor.findings, lines: world.lines, hash: world.hash };
}
