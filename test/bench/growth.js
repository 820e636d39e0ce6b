// npm run bench:growth: the cost of each request, entry, watcher and process when there are many of them.

import { parseArgs } from 'node:util';
import { ensureBuilt } from '../../scripts/build.js';
import { orSentence } from '../../scripts/orSentence.js';
import { cacheGrowth } from './growth/cache.js';
import { watcherGrowth } from './growth/watchers.js';
import { measure, median } from './measure.js';
import { cpuMicroseconds, residentMegabytes } from './processCost.js';
import { jobAliases, jobAliasVariables } from './queries.js';
import { machine, round, table } from './report.js';
import { cores, startGateway, startIssuer, startLoader, startService } from './targets.js';

const help = `Measures how the costs of the gateway grow: npm run bench:growth -- [options]

  --part <name>    only this one; may be repeated. Names: aliases, cache, watchers, processes, start
  --quick          smaller numbers, shorter rounds
  --help
`;

const { values } = parseArgs({
  options: {
    part: { type: 'string', multiple: true },
    quick: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});
const seconds = values.quick ? 1 : 2;
const rounds = values.quick ? 1 : 3;

const titles = {
  aliases: 'Jobs asked for in one request',
  cache: 'Taxpayers in the memory of one process',
  watchers: 'Watchers in one process, ten of each job',
  processes:
    'Processes on one port (`WORKERS`), 50 jobs in one request; loader and service share the cores, `to one` is of the time they leave',
  start: 'Start of the built gateway, alone and idle',
};

const parts = {
  aliases: () => withWorld(aliasGrowth),
  cache: () => cacheGrowth(values.quick ? [1, 1000, 100_000] : [1, 1000, 10_000, 100_000, 1_000_000]),
  watchers: () => watcherGrowth(values.quick ? [10, 1000] : [10, 100, 1000, 10_000]),
  processes: () => withWorld(processGrowth),
  start: () => withWorld(startCost),
};

if (values.help) process.stdout.write(help);
else await orSentence(run);

async function run() {
  await ensureBuilt();
  process.stdout.write(`Measured on ${machine()}.\n`);
  for (const [name, part] of Object.entries(parts)) {
    if (values.part !== undefined && !values.part.includes(name)) continue;
    process.stdout.write(`\n**${titles[name]}** (\`--part ${name}\`)\n\n${await part()}`);
  }
}

async function withWorld(part) {
  const service = await startService({ core: 'any' });
  const issuer = await startIssuer();
  const loader = startLoader({ core: 'any' });
  try {
    return await part({ service, issuer, loader });
  } finally {
    await loader.stop();
    await issuer.stop();
    await service.stop();
  }
}

async function aliasGrowth(world) {
  const env = { MAX_ALIASES: '1000', MAX_ROOT_FIELDS: '1000', MAX_TOKENS: '20000' };
  const gateway = await startGateway({ ...world, env });
  const rows = [];
  for (const count of [1, 10, 50, 200]) {
    const jobs = Array.from({ length: count }, (_, n) => world.service.jobs[n % world.service.jobs.length]);
    const body = JSON.stringify({ query: jobAliases(count, 'a'), variables: jobAliasVariables(jobs) });
    await measure(gateway, { ...world, bodies: [body], seconds: 4 });
    const { cpuUs, p50Ms } = await medianOf(gateway, world, [body]);
    rows.push([count, round(cpuUs), round(cpuUs / count), p50Ms.toFixed(2)]);
  }
  await gateway.stop();
  return table(['jobs', 'CPU µs/request', 'CPU µs/job', 'p50 ms'], rows);
}

async function processGrowth(world) {
  // An expensive request, so that the gateway uses most of the cores that it shares with the loader and the service.
  const variables = jobAliasVariables(world.service.jobs.slice(0, 50));
  const body = JSON.stringify({ query: jobAliases(50, 'a'), variables });
  const rows = [];
  let ofOne;
  for (const workers of values.quick ? [1, 2] : [1, 2, 4, 8]) {
    const gateway = await startGateway({ ...world, core: 'any', env: { WORKERS: String(workers) } });
    const load = { ...world, bodies: [body], connections: 32 };
    await measure(gateway, { ...load, seconds: 4 });
    const taken = coresTaken([world.service.pid, world.loader.pid]);
    const { cpuUs, perSecond, p99Ms, megabytes } = await medianOf(gateway, world, [body], 32);
    // Requests a second per core, counting only core time that the loader and the service did not use.
    const ofEachCore = perSecond / Math.min(workers, cores - taken());
    ofOne ??= ofEachCore;
    const toOne = workers > cores ? '–' : `${((workers * ofEachCore) / ofOne).toFixed(2)}x`;
    rows.push([workers, round(cpuUs), Math.round(perSecond), toOne, p99Ms.toFixed(2), Math.round(megabytes)]);
    await gateway.stop();
  }
  return table(['processes', 'CPU µs/request', 'requests/s', 'to one', 'p99 ms', 'RSS MB, all'], rows);
}

/** @returns a function that gives how many cores the processes `pids` have used on average since this call */
function coresTaken(pids) {
  const spentUs = () => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
  const [before, beganAt] = [spentUs(), performance.now()];
  return () => (spentUs() - before) / (1000 * (performance.now() - beganAt));
}

async function startCost(world) {
  const samples = [];
  for (let time = 0; time < (values.quick ? 3 : 9); time += 1) {
    const startedAt = performance.now();
    const gateway = await startGateway({ ...world, core: 'any' });
    const readyMs = performance.now() - startedAt;
    await new Promise((resolve) => setTimeout(resolve, 1000)); // lets the work that follows a start finish
    samples.push({ readyMs, megabytes: residentMegabytes(gateway.pid) });
    await gateway.stop();
  }
  const of = (column) => round(median(samples.map((sample) => sample[column])));
  return table(
    ['', 'median'],
    [
      ['ms from spawn to ready', of('readyMs')],
      ['RSS MB', of('megabytes')],
    ],
  );
}

async function medianOf(gateway, world, bodies, connections) {
  const samples = [];
  for (let turn = 0; turn < rounds; turn += 1) {
    samples.push(await measure(gateway, { ...world, bodies, seconds, connections }));
  }
  const columns = Object.keys(samples[0]);
  return Object.fromEntries(columns.map((column) => [column, median(samples.map((sample) => sample[column]))]));
}
