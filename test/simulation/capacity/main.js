// npm run capacity: what a large fleet asks of the service and of one store, in virtual time, by the real classes.

import { rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { startRedisProcess } from '../../bench/processes.js';
import { writeSection } from '../../bench/report.js';
import { bundle } from '../bundle.js';
import { reportOf } from './report.js';

const usual = { processes: 200, known: 1_000_000, taxpayers: 200_000, rate: 50, sample: 100, seed: 1 };

const help = `npm run capacity -- [options]

  --processes N   processes of the fleet (default ${usual.processes})
  --known N       taxpayers with a record in the store (default ${usual.known})
  --taxpayers N   those of them that are looked at, all equally often (default ${usual.taxpayers})
  --rate N        requests a second and process (default ${usual.rate})
  --sample N      simulates one of N taxpayers, with their requests (default ${usual.sample})
  --seed N        of the random numbers (default ${usual.seed})
  --write         puts the tables into docs/capacity.md
  --page FILE     with --write: into this page instead
  --help          prints this

Exit code 0; 2 when called wrongly.`;

const phases = [
  { title: 'all processes just started, the store full', event: 'none', from: 0, until: 10 },
  { title: 'as usual', event: 'none', from: 10, until: 30 },
  { title: 'a deploy in five minutes', event: 'deploy', from: 30, until: 40 },
  { title: 'the store cannot be reached for a minute', event: 'store-away', from: 40, until: 55 },
  { title: 'the store has lost everything', event: 'store-emptied', from: 55, until: 70 },
];

const given = readArguments();
if (given.help) console.log(help);
else await run();

function readArguments() {
  try {
    const text = { type: 'string' };
    const names = Object.keys(usual);
    const { values } = parseArgs({
      options: {
        ...Object.fromEntries(names.map((name) => [name, text])),
        ...{ page: text, write: { type: 'boolean' }, help: { type: 'boolean' } },
      },
    });
    for (const name of names) {
      if (values[name] !== undefined && !/^[1-9]\d{0,8}$/.test(values[name]))
        throw new Error(`--${name} takes a whole number from 1 on, not "${values[name]}"`);
    }
    const numbers = Object.fromEntries(names.map((name) => [name, Number(values[name] ?? usual[name])]));
    if (numbers.taxpayers < numbers.sample) throw new Error('--sample must not be above --taxpayers');
    if (numbers.taxpayers > numbers.known) throw new Error('--taxpayers must not be above --known');
    return { ...values, ...numbers };
  } catch (error) {
    console.error(`${error.message}\n\n${help}`);
    process.exit(2);
  }
}

async function run() {
  const { processes, taxpayers, rate, sample, seed } = given;
  const load = {
    processes,
    taxpayers: Math.round(taxpayers / sample),
    requestsPerSecond: (processes * rate) / sample,
    jobShare: 0.1,
    jobsUnderWay: Math.max(1, Math.round(taxpayers / 100 / sample)),
    jobMs: 300_000,
    slowestMs: 400,
    settings: { TOKEN_BUDGET_PER_HOUR: '0', CACHE_MAX_ENTRIES: String(Math.ceil(100_000 / sample)) },
  };
  const found = [];
  let size;
  const lastsMs = phases.at(-1).until * 60_000;
  const startedAt = performance.now();
  await inThread('capacity/worker.ts', { load, phases, seed }, (message) => {
    if (message.found) found.push(message.found);
    if (message.size) size = message.size;
    if (message.at !== undefined) showProgress(message.at / lastsMs, startedAt);
  });
  if (process.stderr.isTTY) process.stderr.write('\n');
  const text = reportOf({ ...given, size }, found, await costsOfRedis(size.bytes / size.entries));
  console.log(text);
  if (given.write) writeSection('capacity', `\n${text}`, given.page ?? 'docs/capacity.md');
}

/** The measured costs of Redis; undefined without redis-server. */
async function costsOfRedis(entryBytes) {
  const redis = await startRedisProcess().catch((error) => {
    console.error(`Without the costs of Redis: redis-server cannot be started (${error.message})`);
  });
  if (redis === undefined) return undefined;
  let costs;
  const work = { url: redis.url, connections: 20, rounds: 150, entryBytes };
  await inThread('capacity/redisCost.ts', work, (message) => {
    costs = message.costs;
  }).finally(() => redis.stop());
  return costs;
}

async function inThread(entry, workerData, onMessage) {
  const file = await bundle(undefined, entry);
  const worker = new Worker(file, { workerData });
  worker.on('message', onMessage);
  await new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', resolve);
  });
  rmSync(file);
}

function showProgress(share, startedAt) {
  if (!process.stderr.isTTY) return;
  const left = ((performance.now() - startedAt) / 1000) * (1 / share - 1);
  process.stderr.write(`\r${(100 * share).toFixed(0)} % of the hour simulated, ${left.toFixed(0)} s left   `);
}
