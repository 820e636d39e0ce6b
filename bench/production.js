// Scenarios as in production: every request has another caller and taxpayer, or asks for something for the first time.

import { hotToken, jobStatus } from './queries.js';

const reading = 'taxpayers:read refresh-jobs:read';
/** Long ago, because the gateway keeps a recently changed record for a minute only; the baselines cache any for 15 minutes. */
const longAgo = { createdAt: '2024-01-01T00:00:00.000Z' };
const beside = ['apolloExpress', 'mercuriusJit', 'rawHttp'];

const callers = ['ES256', 'RS256'].map((alg) => ({
  name: `callers-${alg.toLowerCase()}`,
  title: `Every request from another caller (${alg}) for another taxpayer, asked for before; more than are remembered`,
  targets: ['gateway', ...beside],
  bodies: (service, { issuer, quick }) => signedRequests(service, issuer, alg, quick ? 12_000 : 50_000),
  before: (_service, bodies) => bodies,
}));

/** Requests per round, by the service's latency in milliseconds; a quarter with `--quick`. */
const coldRound = { 0: 800, 20: 320, 100: 160 };
/** Requests until the JIT compiler has settled; before that, a first read costs twice as much. */
const coldWarmUp = 4000;
const reads = [
  {
    name: 'cold-record',
    title: 'First read of a taxpayer',
    bodies: async (service, count) =>
      (await taxpayers(service, count)).map((id) => ({ query: hotToken, variables: { id } })),
  },
  { name: 'cold-job', title: 'First status of a job of a taxpayer never asked for', bodies: firstStatuses },
  {
    name: 'cold-job-known',
    title: 'First status of a job of a taxpayer asked for before',
    bodies: firstStatuses,
    before: (_service, bodies) =>
      bodies.map(({ variables: { taxpayerId } }) => ({ query: hotToken, variables: { id: taxpayerId } })),
  },
];
const cold = reads.flatMap(({ name, title, bodies, before }) =>
  Object.entries(coldRound).map(([latencyMs, amount]) => ({
    name: latencyMs === '0' ? name : `${name}-${latencyMs}ms`,
    title: latencyMs === '0' ? title : `${title}, the service takes ${latencyMs} ms`,
    latencyMs: Number(latencyMs),
    targets: ['gateway', 'gatewayRedis', ...beside],
    amount,
    warmUpAmount: coldWarmUp,
    bodies: (service, { rounds, amount: each, warmUpAmount }) => bodies(service, warmUpAmount + each * rounds),
    ...(before && { before }),
  })),
);

/**
 * As in scenarios.js, with more members. `amount`: requests per round, in place of a duration, and `warmUpAmount` those of the
 * warm-up; none is sent twice. `before(service, bodies)`: bodies that each target is sent once before the warm-up.
 */
export const productionScenarios = [...callers, ...cold];

/** Runs `work` for each item, several at a time. @returns the results in order */
export async function forAll(items, work, atOnce = 16) {
  const results = [];
  let next = 0;
  const run = async () => {
    for (let place = next++; place < items.length; place = next++) results[place] = await work(items[place], place);
  };
  await Promise.all(Array.from({ length: atOnce }, run));
  return results;
}

/** Authorization headers of callers who may do anything; several, because one alone would reach the limits per caller. */
export function readers({ provider }, count) {
  return forAll(Array.from({ length: count }), async (_, n) => {
    const claims = { sub: `reader-${n}`, scope: `${reading} client-links:create taxpayers:any` };
    return `Bearer ${await provider.token(claims, { expiresIn: 36_000 })}`;
  });
}

export function taxpayers(service, count) {
  return service.control('addTaxpayers', count, longAgo);
}

/** New jobs of new taxpayers, `perTaxpayer` for each: `{ taxpayerId, jobId }`. */
export async function newJobs(service, count, perTaxpayer = 1) {
  const ids = await taxpayers(service, Math.ceil(count / perTaxpayer));
  const owners = Array.from({ length: count }, (_, n) => ids[n % ids.length]);
  return forAll(owners, async (taxpayerId) => {
    const { jobId } = await service.control('addJob', { taxpayerId, endsAs: null });
    return { taxpayerId, jobId };
  });
}

async function firstStatuses(service, count) {
  return (await newJobs(service, count)).map((job) => ({ query: jobStatus, variables: job }));
}

/** Signs a token for each request. This is slow, so it happens once per run and reports its progress. */
async function signedRequests(service, issuer, alg, count) {
  const ids = await taxpayers(service, count);
  const requests = [];
  for (const [n, id] of ids.entries()) {
    const claims = { sub: `caller-${n}`, scope: reading, taxpayer_ids: [id] };
    const token = await issuer.provider.token(claims, { alg, expiresIn: 36_000 });
    requests.push({ query: hotToken, variables: { id }, authorization: `Bearer ${token}` });
    if (requests.length % 5000 === 0) process.stderr.write(`${requests.length} of ${count} ${alg} tokens signed\n`);
  }
  return requests;
}
