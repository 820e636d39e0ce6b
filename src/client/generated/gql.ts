/* eslint-disable */
import * as types from './graphql.js';
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';

/**
 * Map of all GraphQL operations in the project.
 *
 * This map has several performance disadvantages:
 * 1. It is not tree-shakeable, so it will include all operations in the project.
 * 2. It is not minifiable, so the string of a GraphQL query will be multiple times inside the bundle.
 * 3. It does not support dead code elimination, so it will add unused operations.
 *
 * Therefore it is highly recommended to use the babel or swc plugin for production.
 * Learn more about it here: https://the-guild.dev/graphql/codegen/plugins/presets/preset-client#reducing-bundle-size
 */
type Documents = {
    "query TaxpayerToken($taxpayerId: ID!, $maxAgeSeconds: Int) {\n  taxpayerToken(taxpayerId: $taxpayerId, maxAgeSeconds: $maxAgeSeconds) {\n    taxpayerId\n    name\n    provider\n    providerId\n    status\n    metadata\n    createdAt\n    fetchedAt\n    stale\n  }\n}\n\nquery AccessToken($taxpayerId: ID!) {\n  taxpayerToken(taxpayerId: $taxpayerId) {\n    taxpayerId\n    accessToken\n  }\n}\n\nquery RefreshJob($taxpayerId: ID!, $jobId: ID!, $waitSeconds: Int) {\n  refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: $waitSeconds) {\n    taxpayerId\n    jobId\n    name\n    status\n    observedAt\n  }\n}\n\nmutation CreateClientLink($input: CreateClientLinkInput!) {\n  createClientLink(input: $input) {\n    clientLink {\n      id\n      url\n    }\n    replayed\n  }\n}\n\nsubscription RefreshJobUpdated($taxpayerId: ID!, $jobId: ID!) {\n  refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) {\n    taxpayerId\n    jobId\n    name\n    status\n    observedAt\n  }\n}\n\nsubscription TaxpayerTokenUpdated($taxpayerId: ID!) {\n  taxpayerTokenUpdated(taxpayerId: $taxpayerId) {\n    taxpayerId\n    name\n    provider\n    providerId\n    status\n    metadata\n    createdAt\n    fetchedAt\n    stale\n  }\n}": typeof types.TaxpayerTokenDocument,
};
const documents: Documents = {
    "query TaxpayerToken($taxpayerId: ID!, $maxAgeSeconds: Int) {\n  taxpayerToken(taxpayerId: $taxpayerId, maxAgeSeconds: $maxAgeSeconds) {\n    taxpayerId\n    name\n    provider\n    providerId\n    status\n    metadata\n    createdAt\n    fetchedAt\n    stale\n  }\n}\n\nquery AccessToken($taxpayerId: ID!) {\n  taxpayerToken(taxpayerId: $taxpayerId) {\n    taxpayerId\n    accessToken\n  }\n}\n\nquery RefreshJob($taxpayerId: ID!, $jobId: ID!, $waitSeconds: Int) {\n  refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: $waitSeconds) {\n    taxpayerId\n    jobId\n    name\n    status\n    observedAt\n  }\n}\n\nmutation CreateClientLink($input: CreateClientLinkInput!) {\n  createClientLink(input: $input) {\n    clientLink {\n      id\n      url\n    }\n    replayed\n  }\n}\n\nsubscription RefreshJobUpdated($taxpayerId: ID!, $jobId: ID!) {\n  refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) {\n    taxpayerId\n    jobId\n    name\n    status\n    observedAt\n  }\n}\n\nsubscription TaxpayerTokenUpdated($taxpayerId: ID!) {\n  taxpayerTokenUpdated(taxpayerId: $taxpayerId) {\n    taxpayerId\n    name\n    provider\n    providerId\n    status\n    metadata\n    createdAt\n    fetchedAt\n    stale\n  }\n}": types.TaxpayerTokenDocument,
};

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 *
 *
 * @example
 * ```ts
 * const query = graphql(`query GetUser($id: ID!) { user(id: $id) { name } }`);
 * ```
 *
 * The query argument is unknown!
 * Please regenerate the types.
 */
export function graphql(source: string): unknown;

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "query TaxpayerToken($taxpayerId: ID!, $maxAgeSeconds: Int) {\n  taxpayerToken(taxpayerId: $taxpayerId, maxAgeSeconds: $maxAgeSeconds) {\n    taxpayerId\n    name\n    provider\n    providerId\n    status\n    metadata\n    createdAt\n    fetchedAt\n    stale\n  }\n}\n\nquery AccessToken($taxpayerId: ID!) {\n  taxpayerToken(taxpayerId: $taxpayerId) {\n    taxpayerId\n    accessToken\n  }\n}\n\nquery RefreshJob($taxpayerId: ID!, $jobId: ID!, $waitSeconds: Int) {\n  refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: $waitSeconds) {\n    taxpayerId\n    jobId\n    name\n    status\n    observedAt\n  }\n}\n\nmutation CreateClientLink($input: CreateClientLinkInput!) {\n  createClientLink(input: $input) {\n    clientLink {\n      id\n      url\n    }\n    replayed\n  }\n}\n\nsubscription RefreshJobUpdated($taxpayerId: ID!, $jobId: ID!) {\n  refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) {\n    taxpayerId\n    jobId\n    name\n    status\n    observedAt\n  }\n}\n\nsubscription TaxpayerTokenUpdated($taxpayerId: ID!) {\n  taxpayerTokenUpdated(taxpayerId: $taxpayerId) {\n    taxpayerId\n    name\n    provider\n    providerId\n    status\n    metadata\n    createdAt\n    fetchedAt\n    stale\n  }\n}"): (typeof documents)["query TaxpayerToken($taxpayerId: ID!, $maxAgeSeconds: Int) {\n  taxpayerToken(taxpayerId: $taxpayerId, maxAgeSeconds: $maxAgeSeconds) {\n    taxpayerId\n    name\n    provider\n    providerId\n    status\n    metadata\n    createdAt\n    fetchedAt\n    stale\n  }\n}\n\nquery AccessToken($taxpayerId: ID!) {\n  taxpayerToken(taxpayerId: $taxpayerId) {\n    taxpayerId\n    accessToken\n  }\n}\n\nquery RefreshJob($taxpayerId: ID!, $jobId: ID!, $waitSeconds: Int) {\n  refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: $waitSeconds) {\n    taxpayerId\n    jobId\n    name\n    status\n    observedAt\n  }\n}\n\nmutation CreateClientLink($input: CreateClientLinkInput!) {\n  createClientLink(input: $input) {\n    clientLink {\n      id\n      url\n    }\n    replayed\n  }\n}\n\nsubscription RefreshJobUpdated($taxpayerId: ID!, $jobId: ID!) {\n  refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) {\n    taxpayerId\n    jobId\n    name\n    status\n    observedAt\n  }\n}\n\nsubscription TaxpayerTokenUpdated($taxpayerId: ID!) {\n  taxpayerTokenUpdated(taxpayerId: $taxpayerId) {\n    taxpayerId\n    name\n    provider\n    providerId\n    status\n    metadata\n    createdAt\n    fetchedAt\n    stale\n  }\n}"];

export function graphql(source: string) {
  return (documents as any)[source] ?? {};
}

export type DocumentType<TDocumentNode extends DocumentNode<any, any>> = TDocumentNode extends DocumentNode<  infer TType,  any>  ? TType  : never;