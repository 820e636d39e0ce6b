import * as z from 'zod';
import { type ErrorCode, errorCodes, GatewayError } from '../errors/errors.js';

/** A cached answer of the service. */
export interface Entry<Value> {
  /** Random: tells two fetches apart even when they brought the same value. */
  readonly version: string;
  readonly value: Value;
  /** Epoch milliseconds. */
  readonly fetchedAt: number;
  /** When its fetch began, by the monotonic clock of this process. Never stored: absent where another process fetched it. */
  readonly startedAt?: number;
  /** What readers derived from the value, kept for the next reader. Never stored. */
  view?: unknown;
}

/** Turns values into JSON for the shared store, and back. */
export interface Codec<Value> {
  encode(value: Value): unknown;
  /** @throws when `stored` is not an encoded value; the entry then counts as absent */
  decode(stored: unknown): Value;
}

const storedEntry = z.object({ version: z.string(), fetchedAt: z.number(), value: z.unknown() });

const storedFailure = z.object({
  code: z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]),
  message: z.string(),
  retryAfterSeconds: z.number().optional(),
  reason: z.string().optional(),
});

export function encodeEntry<Value>({ version, fetchedAt, value }: Entry<Value>, codec: Codec<Value>): unknown {
  return { version, fetchedAt, value: codec.encode(value) };
}

/** Undefined for anything but an encoded entry. */
export function decodeEntry<Value>(stored: unknown, codec: Codec<Value>): Entry<Value> | undefined {
  try {
    const { version, fetchedAt, value } = storedEntry.parse(stored);
    return { version, fetchedAt, value: codec.decode(value) };
  } catch {
    return undefined;
  }
}

export function encodeFailure(error: GatewayError): z.input<typeof storedFailure> {
  const { code, message, retryAfterSeconds, reason } = error;
  return { code, message, retryAfterSeconds, reason };
}

/** Undefined for anything but an encoded failure. */
export function decodeFailure(stored: unknown): GatewayError | undefined {
  const { data } = storedFailure.safeParse(stored);
  if (data === undefined) return undefined;
  const { code, message, retryAfterSeconds, reason } = data;
  return new GatewayError(code, message, { reason, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) });
}
