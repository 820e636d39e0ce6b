import { Auditor, type Finding } from './Auditor.js';
import { Fleet } from './Fleet.js';
import { type Plan, timesOf } from './plan.js';
import { World } from './World.js';

export interface Outcome {
  readonly findings: readonly Finding[];
  readonly lines: readonly string[];
}

/** How long the last requests may take before the fleet is stopped all the same, in milliseconds. */
const lastWorkMs = 100_000;
/** When the time of a plan begins, in milliseconds: all processes are up by then. */
const planBeginsAt = 100;

/** Simulates the plan, then a quiet time in which the fleet must recover: for a kept plan, as long as it takes by now. */
export async function runPlan(given: Plan): Promise<Outcome> {
  const plan = { ...given, ...timesOf(given.steps) };
  const world = new World(plan.seed);
  const auditor = new Auditor(world, plan);
  const fleet = new Fleet(world, plan, auditor);
  for (const [n, step] of plan.steps.entries()) world.at(planBeginsAt + step.at, () => fleet.do(step, n));
  await world.time.runUntil(planBeginsAt + plan.healthyFrom);
  auditor.check('beforeEnd', undefined);
  if (fleet.isDegraded) auditor.find('theStoreIsUsedAgain', 'a process still goes on alone');
  fleet.askAll();
  const isAsking = () => auditor.asked.some(({ what, endedAt }) => endedAt === undefined && !what.startsWith('watch'));
  do {
    await world.time.runUntil(world.now + 1000);
  } while (isAsking() && world.now < planBeginsAt + plan.healthyFrom + lastWorkMs);
  const sum = (of: (process: (typeof fleet.processes)[number]) => number) =>
    fleet.processes.reduce((total, process) => total + of(process), 0);
  const keysPolled = () => sum(({ wired }) => wired.jobs.watches.polled + wired.broker.watches.polled);
  const polled = keysPolled();
  const watched = auditor.asked.filter(({ what, endedAt }) => what.startsWith('watch') && endedAt === undefined).length;
  if (polled > watched) auditor.find('noPollWithoutWatcher', `${polled} keys are polled for ${watched} watchers`);
  auditor.isStopping = true;
  await fleet.stop();
  await world.time.runUntil(world.now + 3000);
  auditor.check('atEnd', {
    timers: sum(({ runtime }) => runtime.timers.size),
    unfinished: auditor.asked.filter(({ endedAt }) => endedAt === undefined),
    polled: keysPolled(),
  });
  return { findings: auditor.findings, lines: world.lines };
}
