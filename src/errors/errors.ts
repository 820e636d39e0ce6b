import { type ErrorCode, errorCodes } from './errorCodes.js';

export { type ErrorCode, errorCodes };

/** Codes of errors for which the gateway or the service is to blame: they use up the error budget. */
export const failureCodes: ReadonlySet<ErrorCode> = new Set([
  'UPSTREAM_TIMEOUT',
  'UPSTREAM_UNAVAILABLE',
  'UPSTREAM_INVALID_RESPONSE',
  'UPSTREAM_RATE_LIMITED',
  'UPSTREAM_CREDENTIALS_REJECTED',
  'OUTCOME_UNKNOWN',
  'AUTH_UNAVAILABLE',
  'INTERNAL_SERVER_ERROR',
]);

/** One thing wrong with the input: where (`input.settings.flowType`) and what was expected, never the value sent. */
export interface Violation {
  readonly path: string;
  readonly message: string;
}

/** The only error that is not masked: its message holds no upstream URL, header or body, nor a value the caller sent. */
export class GatewayError extends Error {
  /** When to try again, in seconds from now, rounded up; default for a retryable code: 1. */
  readonly retryAfterSeconds?: number | undefined;
  readonly violations?: readonly Violation[];
  /** The holder whose own failures, budget or calls led to the refusal. Others who wait for the same read try again. */
  readonly onlyFor?: { readonly holder: string | undefined } | undefined;
  /** Why, in short, for our own log and traces: never a value, a name or an id. Never leaves with an answer. */
  readonly reason?: string | undefined;
  /** The HTTP status of the whole answer, when nothing of the request was carried out. */
  readonly httpStatus?: number | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: GatewayErrorOptions = {},
  ) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0; // a stack is never shown, and costs more than the rest of a refusal
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'GatewayError';
    Object.assign(this, options);
    if (this.retryAfterSeconds) this.retryAfterSeconds = Math.ceil(this.retryAfterSeconds);
  }
}

/** What an error may say besides its code and message. Its `cause`, if any, is an error of ours: others may hold anything. */
export type GatewayErrorOptions = Omit<GatewayError, 'name' | 'message' | 'stack' | 'code'>;

export const tokenRequired =
  'A Bearer token is required: in the Authorization header or, on a WebSocket, as the connection parameter authorization';

/** Refuses a caller who is not known, with a status of 401. */
export function unauthenticated(message: string): GatewayError {
  return new GatewayError('UNAUTHENTICATED', message, { httpStatus: 401 });
}

/** It cannot be found out at the moment who the caller is, or what they may see. `reason`: see {@link GatewayError}. */
export function authUnavailable(message: string, reason: string): GatewayError {
  return new GatewayError('AUTH_UNAVAILABLE', message, { httpStatus: 503, reason });
}

/** The service did not answer within the time of the whole call. */
export function upstreamTimeout(): GatewayError {
  const reason = 'no answer within the time of the whole call';
  return new GatewayError('UPSTREAM_TIMEOUT', 'The service did not answer in time', { reason });
}

/** A request that must not be sent twice was sent, and no usable answer says whether it took effect. */
export function outcomeUnknown(cause: GatewayError): GatewayError {
  const message = 'The request was sent to the service, but no usable answer came back: it may have taken effect';
  return new GatewayError('OUTCOME_UNKNOWN', message, { cause, reason: cause.reason });
}

/** The service rejects our client id and secret. */
export function credentialsRejected(reason: string): GatewayError {
  const message = "The service refuses the gateway's own credentials: the gateway's operators have to act";
  return new GatewayError('UPSTREAM_CREDENTIALS_REJECTED', message, { reason });
}

/** Whether the failure of a shared read is a refusal that is not meant for `holder`. */
export function isRefusalOfAnother(error: unknown, holder: string | undefined): boolean {
  return error instanceof GatewayError && error.onlyFor !== undefined && error.onlyFor.holder !== holder;
}

/** One malformed input; `message` says what was expected and never holds the value. */
export function badInput(path: string, message: string): GatewayError {
  return new GatewayError('BAD_USER_INPUT', `${path} ${message}`, { violations: [{ path, message }] });
}
