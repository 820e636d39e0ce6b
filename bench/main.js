// npm run bench: the gateway as it ships beside the alternatives one would write or choose, in one run on one machine.

import { baselines, compare, summaryTable } from './compare.js';
import { optionsOf } from './optionsOf.js';
import * as processes from './processes.js';
import { machine, writeSection } from './report.js';
import { scenarios } from './scenarios.js';

const names = scenarios.map(({ name }) => name);
const help = `Measures the gateway beside ${baselines.join(', ')}: npm run bench -- [options]

  --scenario <name>  only this one; may be repeated. Names: ${names.join(', ')}
  --quick            short rounds and small numbers, for a first impression
  --write            puts the tables into docs/performance.md
  --help
`;
const values = optionsOf(help, {
  scenario: { type: 'string', multiple: true, default: names, among: names },
  quick: { type: 'boolean' },
  write: { type: 'boolean' },
});
/** Warm-ups last until the JIT compiler has settled. Where nothing is asked for twice, requests count instead of seconds. */
const options = values.quick
  ? { rounds: 3, seconds: 1, warmUpSeconds: 3, count: 200, warmUpCount: 1000 }
  : { rounds: 5, seconds: 2, warmUpSeconds: 5, count: 1600, warmUpCount: 8000 };

await processes.withStarted(async (start) => {
  processes.keepToOtherCores(); // the load comes from this process
  const service = await start(processes.startService({ taxpayers: 50, jobs: 100 }));
  const issuer = await processes.startIssuer();
  const world = { ...options, service, issuer, authorization: await issuer.authorizationOf('bench') };
  // Two settings differ from the defaults, because the load comes from a single caller.
  const env = { ...issuer.env, RATE_LIMIT_PER_MINUTE: '100000000', TOKEN_BUDGET_PER_HOUR: '1000000' };
  const settings = { env, isPinned: true };
  const compared = [];
  for (const scenario of scenarios.filter(({ name }) => values.scenario.includes(name))) {
    process.stderr.write(`${scenario.name}…\n`);
    // New processes: what the compiler made of earlier scenarios would make the later ones dearer.
    const results = await processes.withStarted(async (startOne) => {
      const targets = [];
      targets.push(await startOne(processes.startGateway(service, settings)));
      for (const name of baselines) targets.push(await startOne(processes.startBaseline(name, service, settings)));
      return compare(scenario, targets, world);
    });
    compared.push({ scenario, results });
  }
  const summary = summaryTable(compared);
  process.stdout.write(`\n${summary}`);
  if (!values.write) return;
  const how = `${options.rounds} rounds of ${options.seconds} s each; cores: ${processes.pinning}.`;
  const head = `Measured ${new Date().toISOString().slice(0, 10)} on ${machine()}. ${how}\n`;
  writeSection('comparison', [head, summary].join('\n'), 'docs/performance.md');
});
