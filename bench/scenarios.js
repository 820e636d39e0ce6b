// The scenarios of the comparison. A scenario makes request bodies of the sandbox's taxpayers and jobs; the loader sends them
// in turn.

import { productionScenarios } from './production.js';
import {
  createClientLink,
  entities,
  fullLinkInput,
  hotToken,
  jobAliases,
  jobAliasVariables,
  jobLiterals,
  jobStatus,
  typename,
} from './queries.js';

const graphqlTargets = ['gateway', 'apolloExpress', 'mercuriusJit', 'yoga'];
const everyTarget = [...graphqlTargets, 'rawHttp'];

/**
 * `bodies(service, { issuer, rounds, quick })`: the request bodies, for a service with `taxpayerIds` and `jobs`; with an
 * `authorization` when the caller is not the usual one. `latencyMs`: latency of the service. Default: 0.
 */
export const scenarios = [
  {
    name: 'hot-token',
    title: 'Token record of one taxpayer, asked for before',
    targets: everyTarget,
    bodies: ({ taxpayerIds }) => [{ query: hotToken, variables: { id: taxpayerIds[0] } }],
  },
  {
    name: 'job-status',
    title: 'Status of 100 jobs of 20 taxpayers in turn',
    targets: everyTarget,
    bodies: ({ jobs }) => jobs.map((job) => ({ query: jobStatus, variables: job })),
  },
  {
    name: 'job-aliases',
    title: '50 jobs of 10 taxpayers in one request, 20 documents',
    targets: everyTarget,
    bodies: ({ jobs }) =>
      Array.from({ length: 20 }, (_, n) => ({
        query: jobAliases(50, `a${n}_`),
        variables: jobAliasVariables(ofTenTaxpayers(jobs, n)),
      })),
  },
  {
    name: 'new-documents',
    title: 'The same with ids and other aliases written into each document: 5,000 documents',
    targets: graphqlTargets,
    bodies: ({ jobs }) =>
      Array.from({ length: 5000 }, (_, n) => ({ query: jobLiterals(ofTenTaxpayers(jobs, n), `a${n}_`) })),
  },
  {
    name: 'typename',
    title: '`{ __typename }`',
    targets: everyTarget,
    bodies: () => [{ query: typename }],
  },
  {
    name: 'create-link',
    title: 'Create a client link with the full input',
    targets: everyTarget,
    bodies: () => [{ query: createClientLink, variables: { input: fullLinkInput } }],
  },
  {
    name: 'entities',
    title: '`_entities` with 50 refresh jobs',
    targets: ['gateway', 'apolloExpress'],
    bodies: ({ jobs }) => [
      {
        query: entities,
        variables: { representations: jobs.slice(0, 50).map((job) => ({ __typename: 'RefreshJob', ...job })) },
      },
    ],
  },
  ...[5, 50].flatMap((latencyMs) => [
    {
      name: `hot-token-${latencyMs}ms`,
      title: `Hot token record, the service takes ${latencyMs} ms`,
      latencyMs,
      targets: everyTarget,
      bodies: ({ taxpayerIds }) => [{ query: hotToken, variables: { id: taxpayerIds[0] } }],
    },
    {
      name: `job-status-${latencyMs}ms`,
      title: `Job status, the service takes ${latencyMs} ms`,
      latencyMs,
      targets: everyTarget,
      bodies: ({ jobs }) => jobs.map((job) => ({ query: jobStatus, variables: job })),
    },
  ]),
  ...productionScenarios,
];

/** Fifty jobs of ten taxpayers, others for another `n`. The service has five jobs for each of its first 20 taxpayers. */
function ofTenTaxpayers(jobs, n) {
  return Array.from({ length: 50 }, (_, place) => jobs[(place + n * 5) % jobs.length]);
}
