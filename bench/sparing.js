// npm run bench:sparing: counts the calls to the token endpoint by fleets of real gateway processes over a real store, through
// restarts and kills. Prints a table; with --check it fails when a figure breaks a promise.

import { parseArgs } from 'node:util';
import { machine, table, writeSection } from './report.js';
import { withFleet } from './sparing/fleet.js';
import { reportOf, simulateMonth, usualMonth } from './sparing/month.js';
import { scenarios } from './sparing/scenarios.js';
import { simulateDay } from './sparing/simulatedDay.js';

const help = `Usage: npm run bench:sparing -- [--store lmdb|redis|both] [--scenario NAME[,NAME]] [--check] [--write] [--help]
       npm run bench:sparing -- --month [--curve] [--seed N] [--check] [--write]

  --check   ends with 1 when a figure is not what is promised
  --write   puts the table into docs/token-broker.md
  --month   a month of 2,000 taxpayers in virtual time: a fixed freshness of 15 minutes beside the learned one
  --curve   the same with shares of 0.02 to 0.5
  --seed    of the random numbers of the month, a whole number; ${usualMonth.seed} unless given

Scenarios: ${[...scenarios.map(({ name }) => name), 'simulated-day'].join(', ')}
`;

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'both' },
    scenario: { type: 'string' },
    check: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    month: { type: 'boolean', default: false },
    curve: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(usualMonth.seed) },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(help);
  process.exit(0);
}
const wanted = values.scenario?.split(',');
const unknown = wanted?.filter((name) => name !== 'simulated-day' && !scenarios.some((s) => s.name === name)) ?? [];
const stores = values.store === 'both' ? ['lmdb', 'redis'] : [values.store];
if (unknown.length > 0 || stores.some((store) => store !== 'lmdb' && store !== 'redis')) {
  process.stderr.write(
    `Unknown ${unknown.length > 0 ? `scenario ${unknown.join(', ')}` : `store ${values.store}`}\n\n${help}`,
  );
  process.exit(2);
}

if (!/^\d{1,9}$/.test(values.seed)) {
  process.stderr.write(`The seed must be a whole number\n\n${help}`);
  process.exit(2);
}
if (values.month) {
  const onProgress = (text) => process.stderr.write(`${text}\n`);
  const month = { ...usualMonth, seed: Number(values.seed), curve: values.curve };
  const { text, broken } = reportOf(await simulateMonth({ ...month, onProgress }));
  process.stdout.write(`${text}\n`);
  if (values.write) writeSection('month', `\nSeed ${month.seed}:\n\n${text}`, 'docs/token-broker.md');
  for (const promise of broken) process.stderr.write(`Not as it is meant to be: ${promise}\n`);
  process.exit(values.check && broken.length > 0 ? 1 : 0);
}

const rows = [];
for (const store of stores) {
  for (const scenario of scenarios) {
    if (wanted && !wanted.includes(scenario.name)) continue;
    if (scenario.only && scenario.only !== store) continue;
    process.stderr.write(`${store} ${scenario.name}…\n`);
    const row = await withFleet({ store, taxpayers: scenario.taxpayers, settings: scenario.settings }, scenario.run);
    rows.push({ store, scenario: scenario.name, ...row, promised: scenario.promised });
  }
}
const sections = [];
if (rows.length > 0) sections.push(tableOf(rows));
if (!wanted || wanted.includes('simulated-day')) {
  process.stderr.write('simulated day…\n');
  sections.push((await simulateDay()).text);
}
process.stdout.write(`${sections.join('\n')}\n`);
if (values.write) writeSection('sparing', `\nOn ${machine()}:\n\n${sections.join('\n')}\n`, 'docs/token-broker.md');

const broken = rows.filter(({ promised, ...row }) => !promised.holds(row));
for (const { store, scenario, tokenCalls, failed, p99, promised } of broken) {
  process.stderr.write(
    `${store} ${scenario}: ${tokenCalls} token calls, ${failed} failed, p99 ${p99.toFixed(0)} ms; promised ${promised.text}\n`,
  );
}
if (values.check && broken.length > 0) process.exit(1);

function tableOf(figures) {
  const columns = ['scenario', 'store', 'processes', 'requests', 'failed', 'token calls', 'promised', 'job calls'];
  const cells = figures.map((row) => [
    ...[row.scenario, row.store, row.processes, row.requests, row.failed, row.tokenCalls, row.promised.text],
    ...[row.jobCalls, row.leaseWaits, row.p50.toFixed(0), row.p99.toFixed(0)],
  ]);
  return table([...columns, 'lease waits', 'p50 ms', 'p99 ms'], cells);
}
