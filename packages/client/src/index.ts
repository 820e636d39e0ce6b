/** The typed client for browsers and Node.js: documents for any GraphQL client, error codes, watches on refresh jobs and taxpayers. */

export { type ErrorCode, errorCodes } from './generated/errorCodes.js';
export * from './generated/graphql.js';
export {
  errorCodeOf,
  type GatewayProblem,
  isRetryable,
  problemsOf,
  retryAfterSeconds,
  WatchFailed,
} from './problems.js';
export type { TypedDocumentNode } from './TypedDocumentNode.js';
export {
  type JobUpdate,
  type TokenUpdate,
  type TokenWatchOptions,
  type WatchOptions,
  watchRefreshJob,
  watchTaxpayerToken,
} from './watch.js';
