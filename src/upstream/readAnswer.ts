import type { Readable } from 'node:stream';
import type { Response } from 'node-fetch';
import { parseJson } from '../json.js';

/** An answer in any status, with its body read within the limits. */
export interface ServiceAnswer {
  readonly status: number;
  /** Whole seconds until the service wants to hear from us again, when it said so in a believable way. */
  readonly retryAfterSeconds: number | undefined;
  /** What `parseJson` made of a 2xx answer; other bodies are thrown away unread, so nothing of them can be passed on. */
  readonly json: unknown;
}

/** Why a try brought no usable answer; `ResilientFetch` turns it into a `GatewayError`. */
export class TryFailure extends Error {
  constructor(
    readonly kind: 'timeout' | 'network' | 'server-error' | 'invalid',
    cause?: unknown,
    readonly answer?: ServiceAnswer,
  ) {
    super(kind, { cause });
  }
}

/** How long a short body that nobody reads is drained, in milliseconds. */
const drainMs = 1000;
const maxDrainedBytes = 65_536;
/** Waits above this are not believed: a broken header must not silence the gateway for a year. */
const longestBelievableSeconds = 3600;
/** A date means "now" when it has just passed on its way to us, in seconds. One of long ago is of a wrong clock. */
const justPassedSeconds = 1;

/**
 * Reads an answer of at most `maxBytes`, once unpacked. `limit` is what ends the try; it is aborted to let go of a
 * connection on which more may follow.
 *
 * @throws TryFailure for a 5xx answer, or one that is too large or no JSON
 */
export async function readAnswer(response: Response, maxBytes: number, limit: AbortController): Promise<ServiceAnswer> {
  const { status, headers } = response;
  if (status >= 200 && status < 300) {
    const bytes = await bytesOf(response.body as Readable | null, maxBytes);
    // What is unpacked ends where the packed data does. More may follow, without end and read by nobody.
    if (headers.has('content-encoding')) limit.abort();
    return { status, retryAfterSeconds: undefined, json: parse(bytes) };
  }
  const answer = {
    status,
    retryAfterSeconds: retryAfterSeconds(headers.get('retry-after'), Date.now()),
    json: undefined,
  };
  discard(response, limit);
  if (status >= 500) throw new TryFailure('server-error', { status }, answer);
  return answer;
}

/**
 * Reads a `Retry-After` header in either form (RFC 9110, section 10.2.3: seconds or an HTTP date).
 * Returns whole seconds from `now` (epoch milliseconds), or undefined when it is absent, malformed or absurd.
 */
export function retryAfterSeconds(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  const seconds = /^\d+$/.test(text) ? Number(text) : Math.ceil((httpDate(text) - now) / 1000);
  if (!(seconds >= -justPassedSeconds && seconds <= longestBelievableSeconds)) return undefined;
  return Math.max(0, seconds);
}

/** Only the date forms of RFC 9110, section 5.6.7: `Date.parse` alone would take "-5" or "2040" for a date. */
function httpDate(text: string): number {
  return /^[A-Z][a-z]+,? /.test(text) ? Date.parse(text) : Number.NaN;
}

/** By events: node-fetch iterates over the stream, which costs as much as parsing what is in it. */
function bytesOf(stream: Readable | null, maxBytes: number): Promise<Buffer> {
  if (stream === null) return Promise.resolve(Buffer.alloc(0));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > maxBytes) stream.destroy(new TryFailure('invalid'));
    });
    stream.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    stream.on('error', reject);
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function parse(bytes: Buffer): unknown {
  try {
    return parseJson(utf8.decode(bytes));
  } catch (cause) {
    throw new TryFailure('invalid', cause);
  }
}

/** Reads a short body to its end, so that the connection can be used again, and cuts off everything else. */
function discard({ body: stream, headers }: Response, limit: AbortController): void {
  const body = stream as Readable | null;
  if (body === null) return;
  body.on('error', () => {});
  if (!(Number(headers.get('content-length') ?? Infinity) <= maxDrainedBytes)) {
    limit.abort();
    return;
  }
  const timer = setTimeout(() => limit.abort(), drainMs).unref();
  body.once('close', () => {
    clearTimeout(timer);
    limit.abort();
  });
  body.resume();
}
