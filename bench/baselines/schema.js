// The gateway's API as the baselines serve it: its own schema, with resolvers for what the benchmark asks for.

import { readFileSync } from 'node:fs';
import { DateTimeResolver } from 'graphql-scalars';

export const typeDefs = readFileSync(new URL('../../packages/client/schema.graphql', import.meta.url), 'utf8');

/** Extensions that make the schema a federation subgraph. */
export const federationDefs = `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.5", import: ["@key"])
  extend type RefreshJob @key(fields: "taxpayerId jobId")
`;

/** Over a context of `caller` (see verifyCaller.js) and `api` with `token(taxpayerId)` and `job(taxpayerId, jobId)`. */
export const resolvers = {
  DateTime: DateTimeResolver,
  Query: {
    taxpayerToken: (_, { taxpayerId }, { api, caller }) => {
      caller.require('taxpayers:read', taxpayerId);
      return api.token(taxpayerId);
    },
    refreshJob: (_, job, context) => readJob(job, context),
  },
  RefreshJob: {
    __resolveReference: readJob,
  },
};

function readJob({ taxpayerId, jobId }, { api, caller }) {
  caller.require('refresh-jobs:read', taxpayerId);
  return api.job(taxpayerId, jobId);
}

/** Maps the service's token record to the schema. */
export function toTaxpayerToken(record) {
  return {
    taxpayerId: record.taxpayer_id,
    accessToken: record.access_token,
    name: record.name,
    createdAt: record.created_at,
    provider: record.provider_id.toUpperCase().replaceAll('-', '_'),
    providerId: record.provider_id,
    status: record.status,
    fetchedAt: new Date(),
    stale: false,
  };
}

/** Maps the service's job record to the schema. */
export function toRefreshJob({ taxpayerId, jobId, name, status }) {
  return { taxpayerId, jobId, name, status: status.toUpperCase(), observedAt: new Date() };
}
