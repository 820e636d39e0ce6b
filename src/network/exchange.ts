import nodeFetch, { type RequestInit, type Response } from 'node-fetch';
import { GatewayError } from '../errors/errors.js';
import { utf8 } from '../process/json.js';
import { giveUpAfter } from '../process/pause.js';
import { codeOf } from '../process/systemErrors.js';
import type { Agents } from './agents.js';

/** An answer that is no server error, with its body read. */
export interface Answered<T> {
  readonly status: number;
  /** The pause that the server asks for, where it can be believed. */
  readonly retryAfterSeconds?: number | undefined;
  /** What a 2xx answer says. Bodies of others are discarded, so that nothing of them can be passed on. */
  readonly value?: T;
}

/** For the service, the error code and message of each kind of failure. */
const failures = {
  timeout: ['UPSTREAM_TIMEOUT', 'The service did not answer in time'],
  network: ['UPSTREAM_UNAVAILABLE', 'The service cannot be reached'],
  'server-error': ['UPSTREAM_UNAVAILABLE', 'The service failed to answer'],
  invalid: ['UPSTREAM_INVALID_RESPONSE', 'The service gave an answer that breaks its contract'],
} as const;

/**
 * Why a request brought no usable answer. `reason` says it in a few words, such as `HTTP 503`, without anything of the answer.
 * The code and message are for callers, who see failures of the service alone.
 */
export class NoAnswer extends GatewayError {
  declare readonly reason: string;

  constructor(
    readonly kind: keyof typeof failures,
    reason: string,
    /** The HTTP status, if an answer came. */
    readonly status?: number,
    retryAfterSeconds?: number,
  ) {
    const [code, message] = failures[kind];
    super(code, message, { reason, retryAfterSeconds });
  }

  /** Whether the server surely did not act on the request, although it was sent. */
  get isUndone(): boolean {
    // The server refused our certificate. In TLS 1.3 the alert comes after the request was sent, still unread.
    return nothingDone.has(this.status) || /^ERR_SSL_\w+_ALERT_\w*(CERTIFICATE|UNKNOWN_CA)/.test(this.reason);
  }
}

/**
 * Statuses of requests that were not acted on, which can be sent again. 407 comes from a proxy; 408 is how some balancers end
 * idle connections.
 */
const nothingDone: ReadonlySet<number | undefined> = new Set([407, 408, 425, 503]);

/** Most bytes of an answer. */
const maxBytes = 1024 * 1024;

/**
 * Sends a request, follows no redirect, and reads the answer, in at most `limitMs`. `decode` reads the JSON of a 2xx answer, and
 * throws a NoAnswer when it is not what was expected. @throws NoAnswer, also for a server error
 */
export async function exchange<T>(
  agents: Agents,
  url: string,
  limitMs: number,
  decode: (json: unknown) => T,
  init: RequestInit,
  fetch = nodeFetch,
): Promise<Answered<T>> {
  const target = new URL(url);
  const { agent = agents.agentFor(target) } = init;
  const limit = new AbortController();
  const endLimit = giveUpAfter(limitMs, () => limit.abort());
  let status: number | undefined;
  try {
    const signal = limit.signal as never; // node-fetch has another type for it
    const response = await fetch(url, { ...init, agent, size: maxBytes, redirect: 'manual', signal });
    status = response.status;
    return await readAnswer(response, limit, decode);
  } catch (error) {
    if (error instanceof TypeError) throw error; // a bug of ours
    const failure = Object.assign(failureOf(error, limit.signal.aborted), { status }); // what throws it may not know the status
    if (failure.kind !== 'invalid') agents.retire(target.origin, agent);
    throw failure;
  } finally {
    endLimit();
  }
}

/** Reads JSON in at most `limitMs`. @throws NoAnswer, also for any status but 2xx */
export async function fetchJson(
  agents: Agents,
  url: string,
  limitMs: number,
  init: RequestInit = {},
): Promise<unknown> {
  const { status, value } = await exchange(agents, url, limitMs, (json) => json, init);
  if (value === undefined) throw new NoAnswer('invalid', `HTTP ${status}`, status);
  return value;
}

/**
 * Reads an answer. If the body is not read, or more bytes may follow it, aborts `limit`, which ends the connection. Throws a
 * NoAnswer for a redirect, for a server error, and for a 2xx body that is not JSON or that `decode` refuses.
 */
async function readAnswer<T>(
  response: Response,
  limit: AbortController,
  decode: (json: unknown) => T,
): Promise<Answered<T>> {
  const { status, headers } = response;
  if (response.ok) {
    const bytes = await response.arrayBuffer();
    // The compressed data ends here; more bytes may follow, without end.
    if (headers.has('content-encoding')) limit.abort();
    return { status, value: decode(parse(bytes)) };
  }
  limit.abort();
  if (status < 400) throw new NoAnswer('invalid', `HTTP ${status}`);
  // The proxy gave this answer and forwarded nothing (RFC 9110, section 15.5.8).
  if (status === 407) throw new NoAnswer('network', 'PROXY_HTTP_407');
  const sentAt = Date.parse(headers.get('date') ?? '') || Date.now(); // by the clock of the server, if it tells
  const retryAfterSeconds = secondsIn(headers.get('retry-after'), sentAt);
  if (status >= 500 || nothingDone.has(status)) {
    throw new NoAnswer('server-error', `HTTP ${status}`, status, retryAfterSeconds);
  }
  return { status, retryAfterSeconds };
}

/** A longer wait counts as this one: no server can make the gateway pause for longer. */
const longestWaitSeconds = 3600;
/** A wait above a day is not believed: it is rather a time since 1970, or milliseconds. */
const longestBelievableSeconds = 86_400;

/** The whole seconds of a `Retry-After` header (RFC 9110, section 10.2.3), if they can be believed; at most an hour. */
export function secondsIn(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  // Only the date forms of RFC 9110, section 5.6.7: `Date.parse` alone would take "-5" or "2040" for a date. The form that ends
  // with the year is UTC; `Date.parse` would take local time.
  const at = /^[A-Z][a-z]+,? /.test(header) ? Date.parse(header.replace(/ \d{4}$/, '$& GMT')) : NaN;
  // A date up to a second ago passed while the answer was on its way; an older one comes from a wrong clock.
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((at - now) / 1000);
  if (!(seconds >= 0 && seconds <= longestBelievableSeconds)) return undefined;
  return Math.min(Math.max(0, seconds), longestWaitSeconds); // 0, not -0, for a date of this second
}

function parse(bytes: ArrayBuffer): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new NoAnswer('invalid', 'the body is not JSON'); // the error of the parser would hold the whole body
  }
}

/**
 * Connection-level failures arrive as `system` errors; a body that cannot be unpacked or bounded is an invalid answer. The error
 * is not kept as a cause: it holds the request with its connection, and a failure may be remembered.
 */
function failureOf(error: unknown, aborted: boolean): NoAnswer {
  if (error instanceof NoAnswer) return error;
  const { code = '', type } = error as { readonly code?: string; readonly type?: string };
  if (type === 'max-size') return new NoAnswer('invalid', 'larger than an answer may be');
  if (aborted) return new NoAnswer('timeout', 'no answer in time');
  // Z_ and ERR__ERROR_FORMAT are zlib's (gzip and Brotli), HPE_ those of Node's HTTP parser.
  const broken = /^(Z_|ERR__ERROR_|ERR_BROTLI_|HPE_)/.test(code);
  return new NoAnswer(broken ? 'invalid' : 'network', codeOf(error) ?? 'the connection was lost');
}
