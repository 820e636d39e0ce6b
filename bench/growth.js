// node --import tsx --expose-gc bench/growth.js: the cost of each request, entry and watcher when there are many of them.

import { parseArgs } from 'node:util';
import { cacheGrowth } from './growth/cache.js';
import { watcherGrowth } from './growth/watchers.js';
import { measure, median } from './measure.js';
import { residentMegabytes } from './processCost.js';
import { jobAliases, jobAliasVariables } from './queries.js';
import { machine, round, table } from './report.js';
import { startGateway, startIssuer, startLoader, startService } from './targets.js';

const help = `Measures how the costs of the gateway grow: node --import tsx --expose-gc bench/growth.js [options]

  --part <name>    only this one; may be repeated. Names: aliases, cache, watchers, start
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
  start: 'Start of the built gateway, alone and idle',
};

const parts = {
  aliases: () => withWorld(aliasGrowth),
  cache: () => cacheGrowth(values.quick ? [1, 1000, 100_000] : [1, 1000, 10_000, 100_000, 1_000_000]),
  watchers: () => watcherGrowth(values.quick ? [10, 1000] : [10, 100, 1000, 10_000]),
  start: () => withWorld(startCost),
};

if (values.help) process.stdout.write(help);
else await run();

async function run() {
  process.stdout.write(`Measured on ${machine()}.\n`);
  for (const [name, part] of Object.entries(parts)) {
    if (values.part !== undefined && !values.part.includes(name)) continue;
    process.stdout.write(`\n**${titles[name]}** (\`--part ${name}\`)\n\n${await part()}`);
  }
}

async function withWorld(part) {
  const service = await startService();
  const issuer = await startIssuer();
  const loader = startLoader();
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

async function medianOf(gateway, world, bodies) {
  const samples = [];
  for (let turn = 0; turn < rounds; turn += 1) {
    samples.push(await measure(gateway, { ...world, bodies, seconds }));
  }
  const columns = Object.keys(samples[0]);
  return Object.fromEntries(columns.map((column) => [column, median(samples.map((sample) => sample[column]))]));
}
