// npm run bench: the gateway as it ships beside the alternatives one would write or choose, in one run on one machine.

import { parseArgs } from 'node:util';
import { changingJobs } from './changingJobs.js';
import { command } from './command.js';
import { compare } from './compare.js';
import { decisions } from './decisions.js';
import { measureRevocation } from './measure.js';
import { observability } from './observability.js';
import { profileTable, profilingFlags } from './profile.js';
import { jobStatus } from './queries.js';
import { heading, promisesTable, revocationTable, scenarioTable, summaryTable, writeSection } from './report.js';
import { scenarios } from './scenarios.js';
import { sockets } from './sockets.js';
import { tail, tailTargets } from './tail.js';
import { inWorld, pinning, startBaseline, startGateway, startGatewayOnRedis } from './targets.js';
import { tokenVerification } from './tokenVerification.js';
import { upstreamClients } from './upstreamClients.js';

/** Measurements that do not fit {@link scenarios}. Each prints its own table; `needs` names the targets it uses. */
const parts = {
  'changing-jobs': { needs: tailTargets, run: changingJobs },
  tail: { needs: tailTargets, run: tail },
  sockets: {
    needs: [],
    run: (_targets, world) => sockets({ ...world, starts: measuredStarts(['gateway', 'rawHttp']) }),
  },
  revoked: { needs: ['gateway', 'apolloExpress', 'mercuriusJit', 'yoga', 'rawHttp'], run: revoked },
  'upstream-clients': { needs: [], run: (_targets, { service }, results) => upstreamClients(service, results) },
  'token-verification': { needs: [], run: (_targets, _world, results) => tokenVerification(results) },
  observability: { needs: [], run: (_targets, world) => observability(world, { ...world, rounds: 2 * world.rounds }) },
  decisions: { needs: [], run: (_targets, world) => decisions(world, { ...world, rounds: 2 * world.rounds }) },
};
const names = [...scenarios.map(({ name }) => name), ...Object.keys(parts)];

const help = `Measures the gateway beside baselines: npm run bench -- [options]

  --quick               short rounds and small numbers, for a first impression
  --scenario <name>     only this one; may be repeated. Names: ${names.join(', ')}
  --target <name>       only this one; may be repeated
  --profile <scenario>  instead: where the time of the gateway goes under this one, by room of src/ and by package
  --rounds <n>          rounds per scenario and target (5)
  --seconds <n>         length of a round, whole seconds (2)
  --write               puts the summary into docs/performance.md
  --help
`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    scenario: { type: 'string', multiple: true },
    target: { type: 'string', multiple: true },
    profile: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    write: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});
const options = {
  quick: values.quick === true,
  rounds: Number(values.rounds ?? (values.quick ? 3 : 5)),
  seconds: Number(values.seconds ?? (values.quick ? 1 : 2)),
  /** Enough for the JIT compiler to settle. */
  warmUpSeconds: values.quick ? 3 : 5,
};
const isWanted = (name) => values.scenario === undefined || values.scenario.includes(name);
const isMeasured = (name) => values.target === undefined || values.target.includes(name);

const targetStarts = {
  gateway: startGateway,
  gatewayRedis: startGatewayOnRedis,
  ...Object.fromEntries(
    ['apolloExpress', 'mercuriusJit', 'yoga', 'rawHttp'].map((name) => [name, (world) => startBaseline(name, world)]),
  ),
};

/** Of the `wanted` targets, those that `--target` does not exclude. */
function measuredStarts(wanted) {
  const isIn = new Set(wanted);
  return Object.fromEntries(Object.entries(targetStarts).filter(([name]) => isIn.has(name) && isMeasured(name)));
}

await command({ wantsHelp: values.help, help, problem: problemOfOptions(), run });

function problemOfOptions() {
  const unknown = values.scenario?.find((name) => !names.includes(name));
  if (unknown !== undefined) return `--scenario ${unknown} is not known`;
  const profiled = scenarios.map(({ name }) => name);
  if (values.profile === undefined || profiled.includes(values.profile)) return undefined;
  return `--profile ${values.profile} is not a scenario that can be profiled: ${profiled.join(', ')}`;
}

async function run() {
  await inWorld(async (parties, start) => {
    const world = { ...options, ...parties };
    if (values.profile === undefined) return compareAll(world, start);
    const gateway = await start(startGateway({ ...parties, nodeFlags: profilingFlags }));
    const scenario = scenarios.find(({ name }) => name === values.profile);
    process.stdout.write(`\n${await profileTable(scenario, gateway, world)}`);
  });
}

async function compareAll(world, start) {
  const wanted = scenarios.filter(({ name }) => isWanted(name));
  const wantedParts = Object.entries(parts).filter(([name]) => isWanted(name));
  const needed = new Set([
    ...wanted.flatMap(({ targets }) => targets),
    ...wantedParts.flatMap(([, { needs }]) => needs),
  ]);
  const targets = [];
  for (const startTarget of Object.values(measuredStarts(needed))) {
    targets.push(await start(startTarget(world)));
  }
  const results = {};
  for (const scenario of wanted) {
    results[scenario.name] = await compare(scenario, targets, world);
    process.stdout.write(`\n${scenarioTable(scenario, results[scenario.name])}`);
  }
  for (const [, { needs, run: runPart }] of wantedParts) {
    const asked = targets.filter(({ name }) => needs.includes(name));
    await runPart(asked, world, results);
  }
  const withoutLatency = wanted.filter(({ latencyMs = 0 }) => latencyMs === 0);
  const ratios = promisesTable(results);
  process.stdout.write(`\n${ratios}\n${summaryTable(wanted, results)}`);
  if (!values.write) return;
  const head = heading({ ...options, pinning });
  writeSection('comparison', `${head}\n${summaryTable(withoutLatency, results)}`, 'docs/performance.md');
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
