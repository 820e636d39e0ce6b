// npm run bench:sparing: counts the calls to the token endpoint by fleets of real gateway processes over a real Redis, through
// restarts and kills. Prints a table; with --check it fails when a figure breaks a promise.

import { optionsOf } from './optionsOf.js';
import { table } from './report.js';
import { withFleet } from './sparing/fleet.js';
import { monthWith } from './sparing/month.js';
import { scenarios } from './sparing/scenarios.js';

const names = scenarios.map(({ name }) => name);
const help = `The token calls of a fleet: npm run bench:sparing -- [options]

  --scenario <name>  only this one; may be repeated. Names: ${names.join(', ')}
  --month            instead: a month of 400 taxpayers in virtual time, with a fixed freshness and with the learned one (a minute)
  --check            exits with 1 if a figure is not the promised one
  --help
`;
const values = optionsOf(help, {
  scenario: { type: 'string', multiple: true, default: names, among: names },
  month: { type: 'boolean' },
  check: { type: 'boolean' },
});

for (const promise of await (values.month ? compareMonths() : runScenarios())) {
  process.stderr.write(`Not as it is promised: ${promise}\n`);
  if (values.check) process.exitCode = 1;
}

/** Prints the figures of a month. Returns the promises that they break, as {@link runScenarios} does. */
async function compareMonths() {
  const fixed = await monthWith({ TOKEN_FRESH_SECONDS: '900' });
  const learned = await monthWith({});
  const rows = [
    ['fixed, 15 minutes', fixed.calls, fixed.medianLagMs / 1000],
    ['learned', learned.calls, learned.medianLagMs / 1000],
  ];
  process.stdout.write(table(['freshness', 'token calls', 'median lag in s while a taxpayer signs'], rows));
  const isKept = fixed.calls >= 8 * learned.calls && learned.medianLagMs < fixed.medianLagMs;
  return isKept ? [] : ['8 times fewer calls, at a lower lag'];
}

async function runScenarios() {
  const rows = [];
  for (const scenario of scenarios.filter(({ name }) => values.scenario.includes(name))) {
    process.stderr.write(`${scenario.name}…\n`);
    rows.push({ ...scenario, ...(await withFleet(scenario)) });
  }
  process.stdout.write(`${tableOf(rows)}\n`);
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
