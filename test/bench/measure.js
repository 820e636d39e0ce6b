// One target under one scenario, for one round: what it answered, what that cost, and what it asked of the service.

import { cpuMicroseconds, residentMegabytes } from './processCost.js';

const usualConnections = 8;

/**
 * `load` is the order to the loader, see load.js.
 * @returns `{ cpuUs, p50Ms, p99Ms, perSecond, megabytes, upstreamPer1000, storePer1000, failed }` per request where it says so
 * not; NaN for what a target without a store asks of it. Of an open load also `{ p999Ms, due, unanswered }`.
 */
export async function measure(target, { loader, service, issuer, bodies, connections = usualConnections, ...load }) {
  await service.control('reset-counters');
  const storeBefore = await target.storeCount?.();
  const before = cpuMicroseconds(target.pid);
  // Each round goes on where the last one ended: who keeps documents must not meet the same ones again.
  const first = target.asked ?? 0;
  const order = { url: target.url, headers: headersFor(issuer), requests: bodies, first, connections };
  const report = await loader.run({ ...order, ...load });
  const { failed, firstFailure, requests, seconds, ...latencies } = report;
  target.asked = first + (report.due ?? requests);
  const cpuUs = (cpuMicroseconds(target.pid) - before) / requests;
  const { createClientLink, taxpayerToken, refreshJob } = await service.counters();
  if (failed > 0) process.stderr.write(`${target.name}: ${failed} failed\n${firstFailure}\n`);
  const per1000 = (count) => (count / requests) * 1000;
  return {
    ...latencies,
    cpuUs,
    perSecond: requests / seconds,
    megabytes: residentMegabytes(target.pid),
    upstreamPer1000: per1000(createClientLink + taxpayerToken + refreshJob),
    storePer1000: per1000((await target.storeCount?.()) - storeBefore),
    failed,
  };
}

/**
 * Every taxpayer's token is void at once, then each job is asked for once.
 * @returns `{ failed, tokenCalls }` of the `jobs.length` requests
 */
export async function measureRevocation(target, { service, issuer, bodies }) {
  await failuresOf(target, issuer, bodies); // whoever keeps tokens has them all now
  await service.control('rotate-all-tokens');
  await new Promise((resolve) => setTimeout(resolve, 1100)); // statuses are kept for a second: these are to be asked for
  await service.control('reset-counters');
  const failed = await failuresOf(target, issuer, bodies);
  const { taxpayerToken } = await service.counters();
  return { failed, tokenCalls: taxpayerToken };
}

/** Each column's median over the rounds, and how far the CPU figures of the rounds lie apart. */
export function summary(rounds) {
  const medians = Object.fromEntries(
    Object.keys(rounds[0]).map((column) => [column, median(rounds.map((round) => round[column]))]),
  );
  const cpu = rounds.map((round) => round.cpuUs);
  return {
    ...medians,
    failed: rounds.reduce((sum, round) => sum + round.failed, 0),
    spread: [Math.min(...cpu), Math.max(...cpu)],
    cpuOfRounds: cpu,
  };
}

/** How much CPU one target took of another's: the median of the rounds, each compared with its neighbour in time. */
export function cpuRatio(one, other) {
  return median(one.cpuOfRounds.map((cpuUs, round) => cpuUs / other.cpuOfRounds[round]));
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Sends each body once, all at the same time, and counts the answers with an error. */
async function failuresOf({ url }, issuer, bodies) {
  const answers = await Promise.all(
    bodies.map(async (body) => (await fetch(url, { method: 'POST', headers: headersFor(issuer), body })).json()),
  );
  return answers.filter(({ errors }) => errors !== undefined).length;
}

function headersFor({ authorization }) {
  return { 'content-type': 'application/json', accept: 'application/json', authorization };
}
