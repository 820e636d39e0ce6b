// npm run bench: the gateway as it ships beside what one would write or pick instead, in one run on one machine.

import { parseArgs } from 'node:util';
import { ensureBuilt, orExplain } from '../../scripts/build.js';
import { decisions } from './decisions.js';
import { measure, measureRevocation, summary } from './measure.js';
import { observability } from './observability.js';
import { jobStatus } from './queries.js';
import { heading, promisesTable, revocationTable, scenarioTable, writeSection } from './report.js';
import { scenarios } from './scenarios.js';
import { pinning, startBaseline, startGateway, startIssuer, startLoader, startService } from './targets.js';
import { upstreamClients } from './upstreamClients.js';

const help = `Measures the gateway beside baselines: npm run bench -- [options]

  --quick             short rounds, for a first impression
  --scenario <name>   only this one; may be repeated. Names: ${scenarios.map(({ name }) => name).join(', ')},
                      revoked, upstream-clients, observability, decisions
  --target <name>     only this one; may be repeated
  --rounds <n>        rounds per scenario and target (5)
  --seconds <n>       length of a round, whole seconds (2)
  --write             puts the tables into docs/performance.md
  --page <path>       puts them into another page
  --help
`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    scenario: { type: 'string', multiple: true },
    target: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    write: { type: 'boolean' },
    page: { type: 'string' },
    help: { type: 'boolean' },
  },
});
const rounds = Number(values.rounds ?? (values.quick ? 3 : 5));
const seconds = Number(values.seconds ?? (values.quick ? 1 : 2));
/** What the compiler of Node.js needs to settle. */
const warmUpSeconds = values.quick ? 3 : 5;
const isWanted = (name) => values.scenario === undefined || values.scenario.includes(name);
const isMeasured = (name) => values.target === undefined || values.target.includes(name);

if (values.help) process.stdout.write(help);
else await orExplain(run);

async function run() {
  await ensureBuilt();
  const running = [];
  const start = async (starting) => {
    const thing = await starting;
    running.push(thing);
    return thing;
  };
  try {
    const service = await start(startService());
    const issuer = await start(startIssuer());
    const loader = await start(startLoader());
    const targets = [];
    if (isMeasured('gateway')) targets.push(await start(startGateway({ service, issuer })));
    for (const name of ['apolloExpress', 'mercuriusJit', 'yoga', 'rawHttp'].filter(isMeasured)) {
      targets.push(await start(startBaseline(name, { service, issuer })));
    }
    const world = { loader, service, issuer };
    const sections = [heading({ rounds, seconds, pinning })];
    const results = {};
    for (const scenario of scenarios.filter(({ name }) => isWanted(name))) {
      results[scenario.name] = await compare(scenario, targets, world);
      const table = scenarioTable(scenario, results[scenario.name]);
      process.stdout.write(`\n${table}`);
      sections.push(table);
    }
    if (isWanted('revoked')) sections.push(await revoked(targets, world));
    if (isWanted('upstream-clients')) sections.push(await upstreamClients(service));
    if (isWanted('observability')) {
      sections.push(await observability(world, { rounds: 2 * rounds, seconds, warmUpSeconds }));
    }
    if (isWanted('decisions')) sections.push(await decisions(world, { rounds: 2 * rounds, seconds, warmUpSeconds }));
    const promises = promisesTable(results);
    process.stdout.write(`\n${promises}`);
    sections.splice(1, 0, promises);
    if (values.write || values.page) writeSection('comparison', sections.join('\n'), values.page);
  } finally {
    for (const thing of running.reverse()) await thing.stop();
  }
}

/** Rounds go over all targets in turn, so that a slow moment of the machine hits each of them. */
async function compare(scenario, targets, world) {
  await world.service.control('set-latency', { latencyMs: scenario.latencyMs ?? 0 });
  const bodies = scenario.bodies(world.service).map((body) => JSON.stringify(body));
  const taking = targets.filter(({ name }) => scenario.targets.includes(name));
  const results = new Map(taking.map((target) => [target.name, []]));
  for (const target of taking) await measure(target, { ...world, bodies, seconds: warmUpSeconds });
  for (let round = 0; round < rounds; round += 1) {
    for (const target of taking) results.get(target.name).push(await measure(target, { ...world, bodies, seconds }));
  }
  await world.service.control('set-latency', { latencyMs: 0 });
  return [...results].map(([name, samples]) => ({ name, ...summary(samples) }));
}

async function revoked(targets, world) {
  const bodies = world.service.jobs.map((job) => JSON.stringify({ query: jobStatus, variables: job }));
  const results = [];
  for (const target of targets) {
    results.push({ name: target.name, ...(await measureRevocation(target, { ...world, bodies })) });
  }
  const table = revocationTable(results);
  process.stdout.write(`\n${table}`);
  return table;
}
