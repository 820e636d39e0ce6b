// Measures one target under one scenario for one round: its answers, its costs, and its calls to the service.

import { cpuMicroseconds, residentMegabytes } from './processCost.js';

const usualConnections = 8;

/**
 * `load` is the order to the loader, see load.js.
 * @returns `{ cpuUs, p50Ms, p99Ms, perSecond, megabytes, upstreamPer1000, storePer1000, failed }`. `cpuUs` is per request;
 * `storePer1000` is NaN for a target without a store. For an open load also `{ p999Ms, due, unanswered }`.
 */
export async function measure(target, { loader, service, issuer, bodies, connections = usualConnections, ...load }) {
  await service.control('resetCounters');
  const storeBefore = await target.storeCount?.();
  const before = cpuMicroseconds(target.pid);
  // Each round continues where the last one ended: a target that caches documents must not get the same ones again.
  const first = target.asked ?? 0;
  const order = { url: target.url, headers: headersFor(issuer), requests: bodies, first, connections };
  const report = await loader.run({ ...order, ...load });
  const { failed, firstFailure, requests, seconds, ...latencies } = report;
  target.asked = first + (report.due ?? requests);
  const cpuUs = (cpuMicroseconds(target.pid) - before) / requests;
  const { createClientLink, taxpayerToken, refreshJob } = await service.control('counters');
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
 * Replaces every taxpayer's token at once, then asks for each job once.
 * @returns `{ failed, tokenCalls }` of these requests
 */
export async function measureRevocation(target, { service, issuer, bodies }) {
  await failuresOf(target, issuer, bodies); // fills the caches of the targets that cache tokens
  await service.control('rotateAllTokens');
  await new Promise((resolve) => setTimeout(resolve, 1100)); // until the statuses, which are cached for a second, have expired
  await service.control('resetCounters');
  const failed = await failuresOf(target, issuer, bodies);
  const { taxpayerToken } = await service.control('counters');
  return { failed, tokenCalls: taxpayerToken };
}

/** Each column's median over the rounds, and the range of the CPU figures. */
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

/** The CPU of `one` as a multiple of `other`: the median of the ratios of each round. */
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
