// npm run bench:sparing: counts the calls to the token endpoint by fleets of real gateway processes over a real Redis, through
// restarts and kills. Prints a table; with --check it fails when a figure breaks a promise.

import { optionsOf } from './optionsOf.js';
import { machine, table, writeSection } from './report.js';
import { withFleet } from './sparing/fleet.js';
import { reportOf, simulateMonth, usualMonth } from './sparing/month.js';
import { scenarios } from './sparing/scenarios.js';

const names = scenarios.map(({ name }) => name);
const help = `The token calls of a fleet: npm run bench:sparing -- [options]

  --scenario <name>  only this one; may be repeated. Names: ${names.join(', ')}
  --month            instead: a month of 2,000 taxpayers in virtual time, a fixed freshness of 15 minutes beside the learned one
  --curve            the month with shares of 0.02 to 0.5 as well
  --check            ends with 1 when a figure is not what is promised
  --write            puts the table into docs/performance.md
  --help
`;
const values = optionsOf(help, {
  scenario: { type: 'string', multiple: true, default: names, among: names },
  month: { type: 'boolean' },
  curve: { type: 'boolean' },
  check: { type: 'boolean' },
  write: { type: 'boolean' },
});

const broken = values.month ? await month() : await fleets();
for (const promise of broken) process.stderr.write(`Not as it is promised: ${promise}\n`);
if (values.check && broken.length > 0) process.exitCode = 1;

/** Prints the figures of the month. @returns the promises that they break */
async function month() {
  const { text, broken } = reportOf(await simulateMonth({ ...usualMonth, curve: values.curve }));
  process.stdout.write(`${text}\n`);
  if (values.write) writeSection('month', `\nSeed ${usualMonth.seed}:\n\n${text}`, 'docs/performance.md');
  return broken;
}

/** Runs the scenarios, and prints their figures. @returns the promises that they break */
async function fleets() {
  const rows = [];
  for (const scenario of scenarios.filter(({ name }) => values.scenario.includes(name))) {
    process.stderr.write(`${scenario.name}…\n`);
    rows.push({ ...scenario, ...(await withFleet(scenario)) });
  }
  const text = tableOf(rows);
  process.stdout.write(`${text}\n`);
  if (values.write) writeSection('sparing', `\nOn ${machine()}:\n\n${text}\n`, 'docs/performance.md');
  return rows.filter((row) => !row.promised.holds(row)).map(({ name, promised }) => `${name}: ${promised.text}`);
}

function tableOf(rows) {
  const columns = ['scenario', 'processes', 'requests', 'failed', 'token calls', 'promised', 'job calls'];
  const cells = rows.map((row) => [
    ...[row.name, row.processes, row.requests, row.failed, row.tokenCalls, row.promised.text],
    ...[row.jobCalls, row.p50.toFixed(0), row.p99.toFixed(0)],
  ]);
  return table([...columns, 'p50 ms', 'p99 ms'], cells);
}
