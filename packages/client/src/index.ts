/** The typed client for browsers and Node.js: documents for any GraphQL client, error codes, watches on refresh jobs and taxpayers. */

export { type ErrorCode, errorCodes } from './generated/errorCodes.js';
export * from './generated/graphql.js';
export * from './problems.js';
export type { TypedDocumentNode } from './TypedDocumentNode.js';
export * from './watch.js';
