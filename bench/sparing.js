// npm run bench:sparing: counts the calls to the token endpoint by fleets of real gateway processes over a real Redis, through
// restarts and kills. Prints a table; with --check it fails when a figure breaks a promise.

import { optionsOf } from './optionsOf.js';
import { table } from './report.js';
import { withFleet } from './sparing/fleet.js';
import { scenarios } from './sparing/scenarios.js';

const names = scenarios.map(({ name }) => name);
const help = `The token calls of a fleet: npm run bench:sparing -- [options]

  --scenario <name>  only this one; may be repeated. Names: ${names.join(', ')}
  --check            ends with 1 when a figure is not what is promised
  --help
`;
const values = optionsOf(help, {
  scenario: { type: 'string', multiple: true, default: names, among: names },
  check: { type: 'boolean' },
});

const rows = [];
for (const scenario of scenarios.filter(({ name }) => values.scenario.includes(name))) {
  process.stderr.write(`${scenario.name}…\n`);
  rows.push({ ...scenario, ...(await withFleet(scenario)) });
}
process.stdout.write(`${tableOf(rows)}\n`);
for (const { name, promised } of rows.filter((row) => !row.promised.holds(row))) {
  process.stderr.write(`Not as it is promised: ${name}: ${promised.text}\n`);
  if (values.check) process.exitCode = 1;
}

function tableOf(rows) {
  const columns = ['scenario', 'processes', 'requests', 'failed', 'token calls', 'promised', 'job calls'];
  const cells = rows.map((row) => [
    ...[row.name, row.processes, row.requests, row.failed, row.tokenCalls, row.promised.text],
    ...[row.jobCalls, row.p50.toFixed(0), row.p99.toFixed(0)],
  ]);
  return table([...columns, 'p50 ms', 'p99 ms'], cells);
}
