// Many long-lived connections: idle WebSockets, and event streams that each watch a job. Of the baselines, only rawHttp has
// them; the others have no subscriptions.

import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { keepMoving } from './changingJobs.js';
import { cpuMicroseconds, residentMegabytes } from './processCost.js';
import { newJobs, readers } from './production.js';
import { jobUpdates } from './queries.js';
import { round, storeCell, table } from './report.js';
import { startStreams } from './targets.js';

const kinds = { ws: 'idle WebSockets', sse: 'event streams' };
/** Several, because one caller may hold at most a quarter of `MAX_CONNECTIONS`. */
const callers = 8;
/** File descriptors left for everything else. */
const otherDescriptors = 500;

/** Prints and returns the table. Each kind gets a new process of each target, because memory is not returned to the system. */
export async function sockets(world) {
  const wanted = world.quick ? 400 : 10_000;
  const count = Math.min(wanted, descriptors() - otherDescriptors);
  const jobs = await newJobs(world.service, Math.ceil(count / 10), 5);
  const bodies = jobs.map((job) => JSON.stringify({ query: jobUpdates, variables: job }));
  const authorizations = await readers(world.issuer, callers);
  const rows = [];
  for (const kind of Object.keys(kinds)) {
    for (const [name, start] of Object.entries(world.starts)) {
      const target = await start(world);
      const streams = startStreams();
      try {
        const order = { kind, url: target.url, count, authorizations, bodies };
        rows.push([kinds[kind], name, ...(await held(target, streams, order, world))]);
      } finally {
        await streams.stop();
        await target.stop();
      }
    }
  }
  const fewer =
    count < wanted ? ` ${wanted} were wanted: this system allows a process ${descriptors()} open files.` : '';
  const note = `Each event stream watches one of ${jobs.length} jobs. Changing: ${phaseSeconds(world)} s in which every job changes each second; idle: as long, in which none does.${fewer}`;
  const columns = ['', 'target', 'open', 'KB each'];
  const changing = ['changing: events/s', 'CPU µs/event', 'calls/s', 'store/s'];
  const idle = ['idle: CPU µs/s each', 'calls/s', 'store/s'];
  const text = `**Connections that stay open** (\`sockets\`)\n\n${note}\n\n${table([...columns, ...changing, ...idle], rows)}`;
  process.stdout.write(`\n${text}`);
  return text;
}

async function held(target, streams, order, world) {
  const before = residentMegabytes(target.pid);
  const { opened, failure } = await streams.run(order);
  if (failure !== undefined) process.stderr.write(`${target.name}: ${order.count - opened} not opened: ${failure}\n`);
  await delay(2000); // until the garbage of the handshakes is collected
  const kilobytes = ((residentMegabytes(target.pid) - before) * 1000) / opened;
  if (order.kind === 'ws')
    return [opened, round(kilobytes), '–', '–', '–', '–', ...idleCells(await costs(target, streams, world), opened)];
  const stop = keepMoving(world.service);
  const changing = await costs(target, streams, world);
  await stop();
  const idle = await costs(target, streams, world);
  const cpuPerEvent = changing.events === 0 ? '–' : round(changing.cpuUs / changing.events);
  const cells = [round(changing.events), cpuPerEvent, round(changing.calls), storeCell(changing.store)];
  return [opened, round(kilobytes), ...cells, ...idleCells(idle, opened)];
}

function idleCells(idle, opened) {
  return [round(idle.cpuUs / opened), round(idle.calls), storeCell(idle.store)];
}

/** The costs per second, measured over one phase. */
async function costs(target, streams, world) {
  const seconds = phaseSeconds(world);
  await world.service.control('resetCounters');
  await streams.run({ ask: 'events' });
  const [cpuBefore, storeBefore] = [cpuMicroseconds(target.pid), await target.storeCount?.()];
  await delay(seconds * 1000);
  const cpuUs = (cpuMicroseconds(target.pid) - cpuBefore) / seconds;
  const store = ((await target.storeCount?.()) - storeBefore) / seconds;
  const { taxpayerToken, refreshJob } = await world.service.control('counters');
  const { events } = await streams.run({ ask: 'events' });
  return { cpuUs, store, calls: (taxpayerToken + refreshJob) / seconds, events: events / seconds };
}

function phaseSeconds({ rounds, seconds }) {
  return Math.max(5, 2 * rounds * seconds);
}

function descriptors() {
  const limit = execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim();
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}
