// Measures one target under one load: its CPU time, its latency, its calls to the service.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';
import { quantile } from './quantile.js';

const connections = 8;
const [ticksPerSecond, pageBytes] = ['CLK_TCK', 'PAGESIZE'].map((name) => Number(execFileSync('getconf', [name])));

/**
 * Sends `operations` with autocannon: for `seconds`, in turn, or `onceEach`; their number is then a multiple of the connections.
 * Each connection sends its next request when its last is answered. `cpuUs` and `calls` are for each request.
 */
export async function measure(target, { service, authorization, operations, seconds, onceEach }) {
  await service.control('resetCounters');
  const before = cpuMicroseconds(target.pid);
  const latencies = [];
  let firstFailure;
  let opened = 0;
  const run = autocannon({
    url: target.url,
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json', authorization },
    connections,
    ...(onceEach ? { amount: operations.length } : { duration: seconds }),
    setupClient: (connection) => {
      const own = opened++ % operations.length;
      const asked = operations.filter((_, n) => n % connections === own);
      connection.setRequests(asked.map((operation) => ({ body: JSON.stringify(operation) })));
    },
    verifyBody: (body) => {
      if (!String(body).includes('"errors":')) return true;
      firstFailure ??= String(body).slice(0, 600);
      return false;
    },
  });
  // Autocannon's own histogram has only whole milliseconds.
  run.on('response', (_client, _status, _bytes, milliseconds) => latencies.push(milliseconds));
  const { requests, mismatches, non2xx, errors } = await run;
  const cpuUs = (cpuMicroseconds(target.pid) - before) / requests.total;
  const failed = mismatches + non2xx + errors;
  if (failed > 0) process.stderr.write(`${target.name}: ${failed} failed\n${firstFailure}\n`);
  const { taxpayerToken, refreshJob } = await service.control('counters');
  return { cpuUs, p99Ms: quantile(latencies, 0.99), calls: (taxpayerToken + refreshJob) / requests.total };
}

/** CPU time (user and system) of the process `pid`, as Linux counts it; the resolution is 10 ms. */
function cpuMicroseconds(pid) {
  const fields = statusOf(pid);
  return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1e6;
}

/** Resident memory of the process `pid`, in megabytes. */
export function residentMegabytes(pid) {
  return (Number(statusOf(pid)[21]) * pageBytes) / 1e6;
}

/** The fields after the command name, which may itself hold spaces and parentheses. */
function statusOf(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}
