import { GatewayError } from '../errors/errors.js';

const retryAfterSeconds = 1;
/** Refuses a stream, or an operation on an open socket, while the process drains. */
export const shuttingDown = new GatewayError('SHUTTING_DOWN', 'The gateway is shutting down', {
  httpStatus: 503,
  retryAfterSeconds,
});

/** The error of a stream that is cut because the process drains. */
export const interruption = {
  message: shuttingDown.message,
  extensions: { code: shuttingDown.code, retryable: shuttingDown.retryable, retryAfterSeconds },
} as const;
