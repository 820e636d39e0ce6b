// What the comparison asks for. The sandbox's jobs are five for each of its first 20 taxpayers.

import { addJobs } from './processes.js';
import { hotToken, jobAliases, jobStatus } from './queries.js';

const entities = `query Entities($representations: [_Any!]!) {
  _entities(representations: $representations) { ... on RefreshJob { jobId name status observedAt } }
}`;

/**
 * A scenario is one row of the comparison. `operations(service, count)` makes what is asked for, in turn. `asksOnce`: nothing is
 * asked for twice, so `count` operations are needed. `before(operations)`: what is asked for once, before anything counts.
 * `without`: baselines that cannot answer. `meant`: how many times the CPU of the gateway a baseline is meant to take, at least.
 */
export const scenarios = [
  {
    name: 'hot-token',
    title: 'Token record of one taxpayer, asked for before',
    meant: { apolloExpress: 1, mercuriusJit: 1, rawHttp: 0.56 },
    operations: ({ taxpayerIds }) => [tokenOf(taxpayerIds[0])],
  },
  {
    name: 'job-status',
    title: 'Status of 100 jobs of 20 taxpayers in turn',
    meant: { apolloExpress: 1, mercuriusJit: 1 },
    operations: ({ jobs }) => jobs.map(statusOf),
  },
  {
    name: 'job-aliases',
    title: '50 jobs of 10 taxpayers in one request, 20 documents',
    meant: { apolloExpress: 20, mercuriusJit: 1 },
    operations: ({ jobs }) => Array.from({ length: 20 }, (_, n) => jobAliases(ofTenTaxpayers(jobs, n), `a${n}_`)),
  },
  {
    name: 'entities',
    title: '`_entities` with 50 refresh jobs',
    without: ['mercuriusJit', 'rawHttp'],
    operations: ({ jobs }) => {
      const representations = jobs.slice(0, 50).map((job) => ({ __typename: 'RefreshJob', ...job }));
      return [{ query: entities, variables: { representations } }];
    },
  },
  {
    name: 'cold-record',
    title: 'First read of a taxpayer',
    meant: { apolloExpress: 1 },
    asksOnce: true,
    operations: async (service, count) => (await newTaxpayers(service, count)).map(tokenOf),
  },
  {
    name: 'cold-job',
    title: 'First status of a job of a taxpayer never asked for',
    meant: { apolloExpress: 1 },
    asksOnce: true,
    operations: newStatuses,
  },
  {
    name: 'cold-job-known',
    title: 'First status of a job of a taxpayer asked for before',
    meant: { apolloExpress: 1 },
    asksOnce: true,
    operations: newStatuses,
    before: (operations) => operations.map(({ variables }) => tokenOf(variables.taxpayerId)),
  },
];

function tokenOf(id) {
  return { query: hotToken, variables: { id } };
}

function statusOf(job) {
  return { query: jobStatus, variables: job };
}

/** Fifty jobs of ten taxpayers, others for another `n`. */
function ofTenTaxpayers(jobs, n) {
  return Array.from({ length: 50 }, (_, place) => jobs[(place + n * 5) % jobs.length]);
}

/** Created long ago, because the gateway keeps a recently changed record for a minute only; the baselines cache any for 15. */
function newTaxpayers(service, count) {
  return service.control('addTaxpayers', count, { createdAt: '2024-01-01T00:00:00.000Z' });
}

async function newStatuses(service, count) {
  return (await addJobs(service, await newTaxpayers(service, count))).map(statusOf);
}
