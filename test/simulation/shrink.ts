import { type Plan, timesOf } from './plan.js';
import { type Outcome, runPlan } from './runPlan.js';

/** Removes steps as long as the same check still fails; returns the smallest plan and its outcome. */
export async function shrink(plan: Plan): Promise<{ readonly plan: Plan; readonly outcome: Outcome }> {
  let best = { plan, outcome: await runPlan(plan) };
  const check = best.outcome.findings[0]?.check;
  const attempt = async (steps: Plan['steps']) => {
    const smaller = { ...plan, steps, ...timesOf(steps) };
    const outcome = await runPlan(smaller);
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
    if (!isSmaller || size > 1) size = Math.floor(size / 2);
  }
  return best;
}
