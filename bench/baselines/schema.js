// The part of the gateway's API that the baselines serve: the same names and types, without federation.

import { DateTimeResolver, JSONObjectResolver, URLResolver } from 'graphql-scalars';

export const typeDefs = `
  scalar DateTime
  scalar JSONObject
  scalar URL

  type Query {
    taxpayer(id: ID!): Taxpayer
    taxpayerToken(taxpayerId: ID!): TaxpayerToken
    refreshJob(taxpayerId: ID!, jobId: ID!): RefreshJob
  }
  type Mutation {
    createClientLink(input: CreateClientLinkInput!): CreateClientLinkPayload!
  }
  type Taxpayer {
    id: ID!
    token: TaxpayerToken
    refreshJob(jobId: ID!): RefreshJob
  }
  type TaxpayerToken {
    taxpayerId: ID!
    taxpayer: Taxpayer!
    accessToken: String
    name: String
    metadata: JSONObject
    createdAt: DateTime
    provider: Provider!
    providerId: String!
    status: TaxpayerStatus!
    fetchedAt: DateTime!
    stale: Boolean!
  }
  type RefreshJob {
    taxpayerId: ID!
    jobId: ID!
    taxpayer: Taxpayer!
    name: String!
    status: RefreshJobStatus!
    observedAt: DateTime!
  }
  type ClientLink { id: ID! url: URL! }
  type CreateClientLinkPayload { clientLink: ClientLink! replayed: Boolean! }
  input CreateClientLinkInput { idempotencyKey: String metadata: JSONObject settings: ClientLinkSettingsInput }
  input ClientLinkSettingsInput { flowType: String transcripts: TranscriptsInput prefillData: PrefillDataInput }
  input TranscriptsInput {
    actr: [String!] reca: [String!] waid: [String!] venf: [String!] w2: [String!] form1095A: [String!] notice: [String!]
  }
  input PrefillDataInput { personalInfo: PersonalInfoInput businessInfo: BusinessInfoInput address: AddressInput }
  input PersonalInfoInput { firstName: String lastName: String ssn: String }
  input BusinessInfoInput { name: String taxId: String type: String phone: String title: String }
  input AddressInput { street: String other: String city: String state: String zip: String }
  enum Provider { IRS IRS_TAX_PRO SERVICE_SANDBOX UNRECOGNIZED }
  enum TaxpayerStatus {
    CREATED CONSENT_RECEIVED TAX_AUTHORIZATION_SUBMITTED AUTHORIZED REJECTED COMPLETED UNRECOGNIZED
  }
  enum RefreshJobStatus { PROCESSING COMPLETED FAILED UNRECOGNIZED }
`;

/** Extensions that make the schema a federation subgraph. */
export const federationDefs = `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.5", import: ["@key"])
  extend type RefreshJob @key(fields: "taxpayerId jobId")
`;

/**
 * Resolvers over a context of `caller` (see verifyCaller.js) and `api` with `token(taxpayerId)`, `job(taxpayerId, jobId)`
 * and `createLink(body)`.
 */
export const resolvers = {
  DateTime: DateTimeResolver,
  JSONObject: JSONObjectResolver,
  URL: URLResolver,
  Query: {
    taxpayer: (_, { id }, { caller }) => {
      caller.require('taxpayers:read', id);
      return { id };
    },
    taxpayerToken: (_, { taxpayerId }, context) => readToken(taxpayerId, context),
    refreshJob: (_, { taxpayerId, jobId }, context) => readJob(taxpayerId, jobId, context),
  },
  Mutation: {
    createClientLink: async (_, { input }, { api, caller }) => {
      caller.require('client-links:create');
      return { clientLink: await api.createLink(toLinkBody(input)), replayed: false };
    },
  },
  Taxpayer: {
    token: ({ id }, _, context) => readToken(id, context),
    refreshJob: ({ id }, { jobId }, context) => readJob(id, jobId, context),
  },
  TaxpayerToken: {
    taxpayer: ({ taxpayerId }) => ({ id: taxpayerId }),
    accessToken: ({ accessToken }, _, { caller }) => {
      caller.require('taxpayer-tokens:read');
      return accessToken;
    },
  },
  RefreshJob: {
    taxpayer: ({ taxpayerId }) => ({ id: taxpayerId }),
    __resolveReference: ({ taxpayerId, jobId }, context) => readJob(taxpayerId, jobId, context),
  },
};

function readToken(taxpayerId, { api, caller }) {
  caller.require('taxpayers:read', taxpayerId);
  return api.token(taxpayerId);
}

function readJob(taxpayerId, jobId, { api, caller }) {
  caller.require('refresh-jobs:read', taxpayerId);
  return api.job(taxpayerId, jobId);
}

const providers = { irs: 'IRS', irs_tax_pro: 'IRS_TAX_PRO', 'service-sandbox': 'SERVICE_SANDBOX' };
const taxpayerStatuses = new Set([
  'CREATED',
  'CONSENT_RECEIVED',
  'TAX_AUTHORIZATION_SUBMITTED',
  'AUTHORIZED',
  'REJECTED',
  'COMPLETED',
]);
const jobStatuses = { processing: 'PROCESSING', completed: 'COMPLETED', failed: 'FAILED' };

/** Maps the service's token record to the schema. */
export function toTaxpayerToken(record) {
  return {
    taxpayerId: record.taxpayer_id,
    accessToken: record.access_token,
    name: record.name,
    metadata: record.metadata,
    createdAt: record.created_at,
    provider: providers[record.provider_id] ?? 'UNRECOGNIZED',
    providerId: record.provider_id,
    status: taxpayerStatuses.has(record.status) ? record.status : 'UNRECOGNIZED',
    fetchedAt: new Date(),
    stale: false,
  };
}

/** Maps the service's job record to the schema. */
export function toRefreshJob({ taxpayerId, jobId, name, status }) {
  return { taxpayerId, jobId, name, status: jobStatuses[status] ?? 'UNRECOGNIZED', observedAt: new Date() };
}

/** Maps the input to the request body of the service. */
export function toLinkBody({ metadata, settings }) {
  if (!settings?.transcripts) return { metadata, settings };
  const { actr, reca, waid, venf, w2, form1095A, notice } = settings.transcripts;
  const transcripts = { ACTR: actr, RECA: reca, WAID: waid, VENF: venf, W2: w2, '1095-A': form1095A, NOTICE: notice };
  return { metadata, settings: { ...settings, transcripts } };
}
