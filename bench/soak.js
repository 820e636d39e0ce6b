// node --import tsx bench/soak.js: half an hour of all kinds of load at once, with one fault of the service after another that no caller
// should notice. Reports memory and latency over time.

import { parseArgs } from 'node:util';
import { keepMoving } from './changingJobs.js';
import { command } from './command.js';
import { collectingFlags, heldMegabytes } from './heldMemory.js';
import { measure } from './measure.js';
import { readers, taxpayers } from './production.js';
import * as queries from './queries.js';
import { machine, round, storeCell, table } from './report.js';
import { inWorld, startGateway, startGatewayOnRedis, startStreams } from './targets.js';

const help = `Everything at once, with faults of the service: node --import tsx bench/soak.js [options]

  --minutes <n>     how long (30)
  --per-second <n>  requests (200)
  --store <name>    lmdb or redis (lmdb)
  --help

Ends with 1 when a request failed, or when memory grew over the last two thirds by more than noise.
`;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    'per-second': { type: 'string', default: '200' },
    store: { type: 'string', default: 'lmdb' },
    help: { type: 'boolean' },
  },
});
const minutes = Number(values.minutes);
const perSecond = Number(values['per-second']);
const rowSeconds = Math.min(60, Math.max(5, minutes * 10));
const streamsOpen = 200;
/** The fewest rows from which a slope can be estimated. */
const enough = 8;
/** Small, so that the caches are full within minutes: later growth is not a cache that fills up. */
const env = { CACHE_MAX_ENTRIES: '2000' };

await command({ wantsHelp: values.help, help, problem: problemOfOptions(), run });

function problemOfOptions() {
  if (!(minutes > 0)) return `--minutes must be a number above 0, found ${values.minutes}`;
  if (!(perSecond >= 1)) return `--per-second must be a number of at least 1, found ${values['per-second']}`;
  return ['lmdb', 'redis'].includes(values.store) ? undefined : `--store must be lmdb or redis, found ${values.store}`;
}

async function run() {
  await inWorld(async (world, start) => {
    const { service } = world;
    const streams = await start(startStreams());
    const startTarget = values.store === 'redis' ? startGatewayOnRedis : startGateway;
    const gateway = await start(startTarget({ ...world, nodeFlags: collectingFlags, env }));
    const trouble = troubles(service);
    await start({ stop: keepMoving(service) });
    await start({ stop: trouble.stop });
    report(await soaked({ ...world, streams, gateway }));
  });
}

/** @returns one row of figures per `rowSeconds` */
async function soaked({ streams, gateway, ...world }) {
  let hasEnded = false;
  gateway.ended.then(() => {
    hasEnded = true;
  });
  await open(streams, gateway, world);
  const rows = [];
  for (let turn = 0; turn <= Math.ceil((minutes * 60) / rowSeconds) && !hasEnded; turn += 1) {
    const load = { ...world, bodies: await everything(world, turn), connections: 64, perSecond };
    const figures = await measure(gateway, { ...load, seconds: rowSeconds });
    const { events } = await streams.run({ ask: 'events' });
    const row = { turn, ...figures, events: events / rowSeconds, held: await heldMegabytes(gateway, () => hasEnded) };
    if (turn === 0) continue; // the first turn warms up
    rows.push(row);
    process.stderr.write(
      `${((turn * rowSeconds) / 60).toFixed(1)} min: ${row.failed} failed, ${round(row.held)} MB held\n`,
    );
  }
  return { rows, hasEnded };
}

async function open(streams, { url }, { service, issuer }) {
  const authorizations = await readers(issuer, 8);
  const bodies = service.jobs.map((job) => JSON.stringify({ query: queries.jobUpdates, variables: job }));
  for (const kind of ['ws', 'sse']) {
    const { opened, failure } = await streams.run({ kind, url, count: streamsOpen, authorizations, bodies });
    if (opened < streamsOpen) throw new Error(`Only ${opened} of ${streamsOpen} ${kind} streams opened: ${failure}`);
  }
}

/** The requests of one row, by callers with new tokens. Some taxpayers and documents are new in each row. */
async function everything({ service, issuer }, turn) {
  const authorizations = await readers(issuer, 16);
  const { taxpayerIds, jobs } = service;
  const newcomers = await taxpayers(service, Math.ceil((perSecond * rowSeconds) / 20));
  const of = (n) => Array.from({ length: 50 }, (_, place) => jobs[(n + place) % jobs.length]);
  const kinds = [
    ...Array(8).fill((n) => ({ query: queries.hotToken, variables: { id: taxpayerIds[n % taxpayerIds.length] } })),
    ...Array(6).fill((n) => ({ query: queries.jobStatus, variables: jobs[n % jobs.length] })),
    (n) => ({ query: queries.hotToken, variables: { id: newcomers[Math.floor(n / 20) % newcomers.length] } }),
    (n) => ({ query: queries.jobAliases(50, 'a'), variables: queries.jobAliasVariables(of(n)) }),
    (n) => ({ query: queries.jobLiterals(of(n).slice(0, 10), `a${turn}_${n}_`) }),
    (n) => ({
      query: queries.entities,
      variables: { representations: of(n).map((job) => ({ __typename: 'RefreshJob', ...job })) },
    }),
    () => ({ query: queries.createClientLink, variables: { input: queries.fullLinkInput } }),
  ];
  return Array.from({ length: newcomers.length * kinds.length }, (_, n) => ({
    body: JSON.stringify(kinds[n % kinds.length](n)),
    authorization: authorizations[n % authorizations.length],
  }));
}

/** One fault after another, ten seconds each, ten seconds apart. No failures for links, which are never retried. */
function troubles({ control }) {
  const reads = ['refreshJob', 'taxpayerToken'];
  let armed = [];
  const disarm = async () => {
    for (const id of armed.splice(0)) await control('disarm', id);
  };
  // Disarms faults that met no call: a call that met three in a row would rightly fail.
  const once = (fault) => async () => {
    await disarm();
    armed = await Promise.all(reads.map((endpoint) => control('arm', { endpoint, fault, times: 1 })));
  };
  const each = [
    once({ status: 503 }),
    once({ cut: 'before' }),
    once({ delayMs: 300 }),
    (second) => second === 0 && control('rotateAllTokens'),
    () => control('setLatency', 50),
  ];
  let seconds = 0;
  let working = Promise.resolve();
  const timer = setInterval(() => {
    const [phase, second] = [Math.floor(seconds / 10), seconds % 10];
    seconds += 1;
    const make = phase % 2 ? each[(phase >> 1) % each.length] : undefined;
    const calm = async () => {
      await disarm();
      await control('setLatency', 0);
    };
    working = working.then(() => (make ? make(second) : calm()));
  }, 1000);
  return {
    async stop() {
      clearInterval(timer);
      await working;
    },
  };
}

function report({ rows, hasEnded }) {
  const cells = rows.map((row, n) => [
    ...[(((n + 1) * rowSeconds) / 60).toFixed(1), row.due, row.failed + row.unanswered],
    ...[row.p50Ms, row.p99Ms, row.p999Ms].map((ms) => ms.toFixed(1)),
    ...[round(row.cpuUs), round(row.held), Math.round(row.megabytes), round(row.events)],
    ...[round(row.upstreamPer1000), storeCell(row.storePer1000)],
  ]);
  const columns = [
    'minute',
    'requests',
    'failed',
    'p50 ms',
    'p99 ms',
    'p99.9 ms',
    'CPU µs/request',
    'MB held',
    'RSS MB',
  ];
  const text = table([...columns, 'events/s', 'calls/1000', 'store/1000'], cells);
  process.stdout.write(`\nOn ${machine()}, store ${values.store}, ${perSecond} requests/s.\n\n${text}\n`);
  const last = rows.slice(Math.floor(rows.length / 3));
  const [held, p99] = [slope(last.map((row) => row.held)), slope(last.map((row) => row.p99Ms))];
  const perHour = ({ each, error }, unit) => {
    const [growth, noise] = [each, error].map((value) => (value * 3600) / rowSeconds);
    return `${growth.toFixed(1)} ${unit} an hour, give or take ${(2 * noise).toFixed(1)}`;
  };
  const failed = rows.reduce((sum, row) => sum + row.failed + row.unanswered, 0);
  const isFlat = last.length < enough || held.each <= 2 * held.error;
  process.stdout.write(
    `Over the last ${last.length} rows memory held grows by ${perHour(held, 'MB')}: ${last.length < enough ? 'too few to tell' : isFlat ? 'flat' : 'not flat'}.\n`,
  );
  process.stdout.write(`p99 grows by ${perHour(p99, 'ms')}.\n${failed} requests failed.\n`);
  if (hasEnded) process.stdout.write('The gateway ended.\n');
  if (hasEnded || failed > 0 || !isFlat) process.exitCode = 1;
}

/** Linear regression: the slope per value, and its standard error. */
function slope(numbers) {
  const n = numbers.length;
  const mean = numbers.reduce((sum, y) => sum + y, 0) / n;
  const middle = (n - 1) / 2;
  const spread = numbers.reduce((sum, _, x) => sum + (x - middle) ** 2, 0);
  const each = numbers.reduce((sum, y, x) => sum + (x - middle) * (y - mean), 0) / spread;
  const residue = numbers.reduce((sum, y, x) => sum + (y - mean - each * (x - middle)) ** 2, 0);
  return { each, error: Math.sqrt(residue / Math.max(1, n - 2) / spread) };
}
