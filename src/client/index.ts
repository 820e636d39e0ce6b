/** The typed client for browsers and Node.js: documents for any GraphQL client, error codes, a watch on refresh jobs. */
export { type ErrorCode, errorCodes } from '../errors/errorCodes.js';
export type { WebSocketLike } from './connect.js';
export * from './generated/graphql.js';
export { errorCodeOf, type GatewayProblem, isRetryable, problemsOf, retryAfterSeconds } from './problems.js';
export { type JobUpdate, WatchFailed, type WatchOptions, watchRefreshJob } from './watchRefreshJob.js';
