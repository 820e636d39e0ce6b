import * as z from 'zod';
import { type ErrorCode, errorCodes, GatewayError } from '../errors/errors.js';
import type { Stored } from '../stores/Store.js';

/** A cached answer of the service. */
export interface Entry<Value> {
  /** Random: tells two fetches apart even when they brought the same value. */
  readonly version: string;
  readonly value: Value;
  /** When it was fetched, by the monotonic clock of this process. In the future where the store's clock was set back. */
  readonly readAt: number;
  /** The same in epoch milliseconds, to be shown. */
  readonly fetchedAt: number;
  /** When its fetch began, by the monotonic clock; absent where another process fetched it. */
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

const storedFailure = z.object({
  code: z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]),
  message: z.string(),
  retryAfterSeconds: z.number().optional(),
  reason: z.string().optional(),
});

/** The entry that the store holds; undefined for anything but an encoded value. */
export function entryOf<Value>(
  { version, value, ageMs }: Stored<unknown>,
  codec: Codec<Value>,
): Entry<Value> | undefined {
  try {
    const decoded = codec.decode(value);
    return { version, value: decoded, readAt: performance.now() - ageMs, fetchedAt: Date.now() - ageMs };
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
