// What a gateway costs while nobody asks: its start, its memory, and connections that stay open.

import { setTimeout as delay } from 'node:timers/promises';
import { nextMessage, openSocket, subscribe } from './caller.js';
import { inParallel } from './inParallel.js';
import { cpuMicroseconds, residentMegabytes } from './measure.js';
import { addJobs } from './processes.js';
import { quantile } from './quantile.js';
import { round, table } from './report.js';
import { newTaxpayers } from './scenarios.js';

const starts = 5;
/** Several, because one caller may hold at most a quarter of `MAX_CONNECTIONS`. */
const callers = 8;
const watchersOfAJob = 10;
const query = `subscription ($taxpayerId: ID!, $jobId: ID!) {
  refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) { status }
}`;

/** `starting`: functions that start a target. */
export async function startTable(starting) {
  const rows = [];
  for (const start of starting) {
    const [times, memory] = [[], []];
    let name;
    for (let n = 0; n < starts; n += 1) {
      const startedAt = performance.now();
      const target = await start();
      times.push(performance.now() - startedAt);
      await delay(1000); // lets the work that follows a start finish
      memory.push(residentMegabytes(target.pid));
      name = target.name;
      await target.stop();
    }
    rows.push([name, round(quantile(times, 0.5)), round(quantile(memory, 0.5))]);
  }
  return table(['start (`start`)', 'ms to ready', 'RSS MB a second later'], rows);
}

/** Opens many WebSockets: idle ones, then ones that each watch a job that does not change. */
export async function socketsTable(startGateway, { service, issuer, sockets: count }) {
  const jobs = await addJobs(service, await newTaxpayers(service, count / watchersOfAJob));
  const authorizations = await inParallel(callers, callers, (n) => issuer.authorizationOf(`caller-${n}`));
  const rows = [];
  for (const watches of [false, true]) {
    const gateway = await startGateway(); // a new one, because memory is not given back to the system
    const before = residentMegabytes(gateway.pid);
    const sockets = await inParallel(count, 50, async (n) => {
      const socket = await openSocket({ url: gateway.url, authorization: authorizations[n % callers] });
      if (!watches) return socket;
      subscribe(socket, '1', { query, variables: jobs[n % jobs.length] });
      if (!(await nextMessage(socket))?.includes('"type":"next"')) socket.terminate();
      return socket;
    });
    const open = sockets.filter(({ readyState, OPEN }) => readyState === OPEN).length;
    await delay(2000); // until the garbage of the handshakes is collected
    const kilobytes = ((residentMegabytes(gateway.pid) - before) * 1000) / open;
    const title = watches ? `each watches one of ${jobs.length} jobs` : 'idle';
    rows.push([title, open, round(kilobytes), ...(await costsPerSecond(gateway, service, open))]);
    for (const socket of sockets) socket.terminate();
    await gateway.stop();
  }
  return table(['WebSockets of the gateway (`sockets`)', 'open', 'KB each', 'CPU µs/s each', 'calls/s'], rows);
}

async function costsPerSecond({ pid }, service, open) {
  const seconds = 10;
  await service.control('resetCounters');
  const before = cpuMicroseconds(pid);
  await delay(seconds * 1000);
  const cpuUs = (cpuMicroseconds(pid) - before) / seconds;
  const { taxpayerToken, refreshJob } = await service.control('counters');
  return [round(cpuUs / open), round((taxpayerToken + refreshJob) / seconds)];
}
