import { type Logger, pino } from 'pino';
import { type LogDestination, StandardOutput } from './StandardOutput.js';

export type { Logger };

/** Fields that must never be logged, in any object. */
const neverLogged =
  'authorization accessToken access_token clientSecret secret password ssn taxId metadata variables cookie headers body'
    .split(' ')
    .flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

/**
 * The root logger: JSON lines with a level, a time and named fields. Everything written passes its redaction. Errors are
 * reduced to their type, code and stack frames: a message may quote what a caller or the service sent. With `traceId`, a
 * line that is written for a request has the id of its trace.
 */
export function createLogger(
  level: string,
  destination: LogDestination = new StandardOutput(),
  traceId?: (() => string | undefined) | undefined,
): Logger {
  const options = {
    level,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    ...(traceId && { mixin: () => ({ traceId: traceId() }) }),
    redact: { paths: neverLogged, censor: '[redacted]' },
    serializers: { err: errorWithoutMessage, error: errorWithoutMessage },
  };
  return pino(options, destination);
}

function errorWithoutMessage(error: unknown): unknown {
  if (!(error instanceof Error)) return { type: typeof error };
  const code = (error as { code?: unknown }).code;
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    frames: error.stack?.match(/(?<=^ {4})at .*$/gm) ?? undefined,
    ...(error.cause !== undefined && { cause: errorWithoutMessage(error.cause) }),
  };
}
