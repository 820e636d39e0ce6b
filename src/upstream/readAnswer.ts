import type { Response } from 'node-fetch';
import { GatewayError, type GatewayErrorOptions } from '../errors/errors.js';

/** An answer in any status, with its body read. */
export interface ServiceAnswer<T> {
  readonly status: number;
  /** The pause that the service asks for, where it can be believed. */
  readonly retryAfterSeconds: number | undefined;
  /** What a 2xx answer says. Bodies of others are discarded, so that nothing of them can be passed on. */
  readonly value: T | undefined;
}

/** The error code and message for each kind of failed try. */
const failures = {
  timeout: ['UPSTREAM_TIMEOUT', 'The service did not answer in time'],
  network: ['UPSTREAM_UNAVAILABLE', 'The service cannot be reached'],
  'server-error': ['UPSTREAM_UNAVAILABLE', 'The service failed to answer'],
  invalid: ['UPSTREAM_INVALID_RESPONSE', 'The service gave an answer that breaks its contract'],
} as const;

/** Why a try brought no usable answer. */
export class TryFailure extends GatewayError {
  constructor(
    readonly kind: keyof typeof failures,
    options: GatewayErrorOptions = {},
    readonly status?: number,
  ) {
    const [code, message] = failures[kind];
    super(code, message, options);
  }
}

/** A longer wait counts as this one: the service cannot make the gateway pause for longer. */
const longestWaitSeconds = 3600;
/** A wait above a day is not believed: it is rather a time since 1970, or milliseconds. */
const longestBelievableSeconds = 86_400;

/** Statuses of requests that were not acted on, which can be sent again. 408 is how some balancers end idle connections. */
export const nothingDone: ReadonlySet<number | undefined> = new Set([408, 425, 503]);

/**
 * Reads an answer. If the body is not read, or more bytes may follow it, aborts `limit`, which ends the try and its
 * connection. Throws a TryFailure for a status of 5xx or of `nothingDone`, for one that the interface does not have, and for a
 * 2xx body that is not JSON or that `decode` refuses.
 */
export async function readAnswer<T>(
  response: Response,
  limit: AbortController,
  decode: (json: unknown) => T,
): Promise<ServiceAnswer<T>> {
  const { status, headers } = response;
  if (response.ok) {
    const bytes = await response.arrayBuffer();
    // The compressed data ends here; more bytes may follow, without end.
    if (headers.has('content-encoding')) limit.abort();
    return { status, retryAfterSeconds: undefined, value: decode(parse(bytes)) };
  }
  limit.abort();
  if (status < 400) throw new TryFailure('invalid', { reason: `HTTP ${status}` });
  const sentAt = Date.parse(headers.get('date') ?? '') || Date.now(); // by the clock of the service, if it tells
  const retryAfterSeconds = secondsIn(headers.get('retry-after'), sentAt);
  if (status < 500 && !nothingDone.has(status)) return { status, retryAfterSeconds, value: undefined };
  throw new TryFailure('server-error', { reason: `HTTP ${status}`, retryAfterSeconds }, status);
}

/** The whole seconds of a `Retry-After` header (RFC 9110, section 10.2.3), if they can be believed; at most an hour. */
export function secondsIn(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  // Only the date forms of RFC 9110, section 5.6.7: `Date.parse` alone would take "-5" or "2040" for a date. The form that ends
  // with the year is UTC; `Date.parse` would take local time.
  const at = /^[A-Z][a-z]+,? /.test(text) ? Date.parse(text.replace(/ \d{4}$/, '$& GMT')) : NaN;
  // A date up to a second ago passed while the answer was on its way; an older one comes from a wrong clock.
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((at - now) / 1000);
  if (!(seconds >= 0 && seconds <= longestBelievableSeconds)) return undefined;
  return Math.min(Math.max(0, seconds), longestWaitSeconds); // 0, not -0, for a date of this second
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function parse(bytes: ArrayBuffer): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new TryFailure('invalid', { reason: 'the body is not JSON' }); // the error of the parser would hold the whole body
  }
}
