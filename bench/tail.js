// Tail latency: open-loop load at shares of the gateway's capacity, the same load for every target.

import { measure } from './measure.js';
import { forAll, newJobs, readers } from './production.js';
import { hotToken, jobAliases, jobAliasVariables, jobStatus } from './queries.js';
import { round, storeCell, table } from './report.js';

export const tailTargets = ['gateway', 'apolloExpress', 'mercuriusJit', 'rawHttp'];
const shares = [0.25, 0.5, 0.75];
const connections = 64;
const callers = 16;
const kinds = [
  {
    name: 'hot-token',
    title: 'Token record of one taxpayer',
    asked: ({ taxpayerIds }) => [{ query: hotToken, variables: { id: taxpayerIds[0] } }],
  },
  {
    name: 'statuses',
    title: 'Statuses of 1,000 jobs that fall due in the same second',
    asked: async (service, { quick }) =>
      (await newJobs(service, quick ? 200 : 1000, 5)).map((job) => ({ query: jobStatus, variables: job })),
  },
  {
    name: 'aliases',
    title: '50 jobs of 10 taxpayers in one request',
    asked: ({ jobs }) => [{ query: jobAliases(50, 'a'), variables: jobAliasVariables(jobs.slice(0, 50)) }],
  },
];

/** Prints and returns the table. Puts the figures at half of the capacity into `results.tail`, by kind, for the promises. */
export async function tail(targets, world, results) {
  const { rounds, seconds, warmUpSeconds } = world;
  const authorizations = await readers(world.issuer, callers);
  const rows = [];
  results.tail = {};
  for (const { name: kind, title, asked } of kinds) {
    const bodies = byReaders(authorizations, await asked(world.service, world));
    const load = { ...world, bodies, connections };
    const capacities = new Map();
    for (const target of targets) {
      await measure(target, { ...load, seconds: warmUpSeconds });
      capacities.set(target.name, (await measure(target, { ...load, seconds })).perSecond);
    }
    const capacity = capacities.get('gateway') ?? Math.max(...capacities.values());
    for (const share of shares) {
      const perSecond = Math.max(1, Math.round(capacity * share));
      for (const target of targets) {
        await askTogether(target, load);
        const result = await measure(target, { ...load, seconds: rounds * seconds, perSecond });
        if (share === 0.5) results.tail[kind] = [...(results.tail[kind] ?? []), { name: target.name, ...result }];
        rows.push([`${title}, ${perSecond}/s (${share * 100} %)`, target.name, ...openCells(result)]);
      }
    }
  }
  const note = `${rounds * seconds} s each; latencies count from when a request was due. 100 %: what the gateway answers to ${connections} connections that wait for it. "answered" within 5 s after the end.`;
  const text = `**The tail, at shares of what the gateway can take** (\`tail\`)\n\n${note}\n\n${table(['load', 'target', ...openColumns], rows)}`;
  process.stdout.write(`\n${text}`);
  return text;
}

export const openColumns = [
  ...['CPU µs/request', 'p50 ms', 'p99 ms', 'p99.9 ms', 'answered', 'calls/1000', 'store/1000', 'failed'],
];

/** The cells of {@link openColumns} for a round of open load. */
export function openCells(result) {
  const { cpuUs, p50Ms, p99Ms, p999Ms, due, unanswered, upstreamPer1000, failed } = result;
  const latencies = [p50Ms, p99Ms, p999Ms].map((ms) => ms.toFixed(2));
  const answered = `${(100 * (1 - unanswered / due)).toFixed(1)} %`;
  return [round(cpuUs), ...latencies, answered, round(upstreamPer1000), storeCell(result.storePer1000), failed];
}

/** Pairs the operations with the readers in turn, so that each operation and each reader occurs. */
export function byReaders(authorizations, asked) {
  const count = Math.max(asked.length, authorizations.length);
  return Array.from({ length: count }, (_, n) => ({
    body: JSON.stringify(asked[n % asked.length]),
    authorization: authorizations[n % authorizations.length],
  }));
}

/** Asks for everything at once, so that cached statuses all expire at the same time. */
async function askTogether({ url }, { bodies }) {
  const ask = async ({ body, authorization }) => {
    const headers = { 'content-type': 'application/json', authorization };
    await (await fetch(url, { method: 'POST', headers, body })).arrayBuffer();
  };
  await forAll(bodies, ask, 100);
}
