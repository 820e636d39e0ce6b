// Compares the CPU cost of several ways to do one thing in this process, measured in turn.

import { cpuRatio, median } from './measure.js';
import { round, table } from './report.js';

const turns = 6;
const atOnce = 4;

/** Runs each of `ways` `times` times per turn. @returns for each way, the CPU microseconds per run in each turn */
export async function costsInTurn(ways, times) {
  const samples = new Map(Object.keys(ways).map((name) => [name, []]));
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [name, act] of Object.entries(ways)) {
      const before = process.cpuUsage();
      for (let n = 0; n < times; n += atOnce) {
        await Promise.all(Array.from({ length: atOnce }, (_, k) => act(n + k)));
      }
      const { user, system } = process.cpuUsage(before);
      if (turn > 0) samples.get(name).push((user + system) / times); // the first turn warms up
    }
  }
  return samples;
}

/** The CPU of `one` as a multiple of `other`. */
export const ratioOf = (samples, one, other) =>
  cpuRatio({ cpuOfRounds: samples.get(one) }, { cpuOfRounds: samples.get(other) });

/** A row for each way, with its ratio to `base`. */
export function costsTable(columns, samples, base) {
  const ratio = (name) => `${ratioOf(samples, name, base).toFixed(2)}x`;
  const rows = [...samples].map(([name, costs]) => [name, round(median(costs)), ratio(name)]);
  return table(columns, rows);
}
