// Compares the gateway with the baselines in one scenario.

import { measure } from './measure.js';
import { quantile } from './quantile.js';
import { round, table } from './report.js';

export const baselines = ['rawHttp', 'apolloExpress', 'mercuriusJit'];

/**
 * Warms the targets up, then measures all of them in turn in each round, so that a slow moment of the machine affects all.
 * @returns by name, the figures of the rounds
 */
export async function compare(scenario, targets, world) {
  const { service, rounds, seconds, warmUpSeconds, count, warmUpCount } = world;
  const operations = await scenario.operations(service, warmUpCount + rounds * count);
  const onlyOnce = (from, to) => ({ operations: operations.slice(from, to), onceEach: true });
  const warmUp = scenario.asksOnce ? onlyOnce(0, warmUpCount) : { operations, seconds: warmUpSeconds };
  const taking = targets.filter(({ name }) => !scenario.without?.includes(name));
  for (const target of taking) {
    const before = scenario.before?.(operations);
    if (before) await measure(target, { ...world, operations: before, onceEach: true });
    await measure(target, { ...world, ...warmUp });
  }
  const results = new Map(taking.map(({ name }) => [name, []]));
  for (let turn = 0; turn < rounds; turn += 1) {
    const from = warmUpCount + turn * count;
    const load = scenario.asksOnce ? onlyOnce(from, from + count) : { operations, seconds };
    // The order turns round each time, as who comes first finds the machine as the last one left it.
    for (const target of turn % 2 ? taking.toReversed() : taking) {
      results.get(target.name).push(await measure(target, { ...world, ...load }));
    }
  }
  return results;
}

/** One row for each of `compared` (`{ scenario, results }`): the gateway's CPU, and the baselines' as multiples of it. */
export function summaryTable(compared) {
  const rows = compared.map(({ scenario: { name, title, meant = {} }, results }) => {
    const gateway = results.get('gateway');
    const ratios = baselines.map((each) => ratioCell(results.get(each), gateway, meant[each]));
    const [cpuUs, p99Ms, calls] = ['cpuUs', 'p99Ms', 'calls'].map((column) => median(gateway.map((of) => of[column])));
    return [`${title} (\`${name}\`)`, round(cpuUs), ...ratios, p99Ms.toFixed(2), round(1000 * calls)];
  });
  return table(['request', 'CPU µs', ...baselines, 'p99 ms', 'calls/1000'], rows);
}

/** The median of the ratios of each round; bold when it is below what is `meant`. A dash when it was not measured. */
function ratioCell(baseline, gateway, meant = 0) {
  if (baseline === undefined) return '–';
  const ratio = median(baseline.map(({ cpuUs }, turn) => cpuUs / gateway[turn].cpuUs));
  const cell = ratio < meant ? `**${ratio.toFixed(2)}x**` : `${ratio.toFixed(2)}x`;
  return meant > 0 ? `${cell} (${meant}x)` : cell;
}

function median(numbers) {
  return quantile(numbers, 0.5);
}
