import { pino } from 'pino';
import type { LogDestination } from './StandardOutput.js';

export type Logger = pino.Logger<'audit'>;

/** Fields that must never be logged, in any object. */
const neverLogged =
  'authorization accessToken access_token clientSecret secret password ssn taxId metadata variables cookie headers body'
    .split(' ')
    .flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);

/**
 * The root logger: JSON lines with a level, a time and named fields. Everything written passes its redaction. Errors are
 * reduced to their type, code and stack frames: a message may quote what a caller or the service sent.
 */
export function createLogger(level: string, destination: LogDestination): Logger {
  const options = {
    level,
    // Above `fatal`, so that no LOG_LEVEL but `silent` leaves audit lines out.
    customLevels: { audit: 70 },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: neverLogged, censor: '[redacted]' },
    serializers: { err: errorWithoutMessage, error: errorWithoutMessage },
  };
  return pino(options, destination);
}

/** A function and its place in code, as V8 writes them. */
const frame =
  /(?<=^ {4})at (?:[\w$.<>#[\] ]+ \((?:(?:node:|file:\/\/|\/).+:\d+:\d+|<anonymous>|native|index \d+)\)|(?:async )?(?:node:|file:\/\/|\/).+:\d+:\d+)$/gm;

/** The frames of a stack, looked for outside the message, whose lines may look like frames. */
function framesOf({ stack, message }: Error): string[] | undefined {
  return String(stack).replace(String(message), '').match(frame) ?? undefined;
}

function errorWithoutMessage(error: unknown): unknown {
  if (!(error instanceof Error)) return { type: typeof error };
  const code = (error as { code?: unknown }).code;
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    frames: framesOf(error),
    ...(error.cause !== undefined && { cause: errorWithoutMessage(error.cause) }),
  };
}
