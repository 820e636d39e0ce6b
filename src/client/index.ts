/**
 * The typed client: documents to pass to any GraphQL client, the gateway's error codes, and a watch on refresh jobs. It
 * holds no server code and runs in browsers as well as in Node.js.
 */
export { type ErrorCode, errorCodes } from '../errors/errorCodes.js';
export type { WebSocketLike } from './connect.js';
export * from './generated/graphql.js';
export { errorCodeOf, type GatewayProblem, isRetryable, problemsOf, retryAfterSeconds } from './problems.js';
export { type JobUpdate, WatchFailed, type WatchOptions, watchRefreshJob } from './watchRefreshJob.js';
