import type { Readable } from 'node:stream';
import type { Response } from 'node-fetch';
import { parseJson } from '../json.js';
import { retryAfterSeconds } from './retryAfter.js';

/** An answer in any status, with its body read within the limits. */
export interface ServiceAnswer {
  readonly status: number;
  /** Whole seconds until the service wants to hear from us again, when it said so in a believable way. */
  readonly retryAfterSeconds: number | undefined;
  /** What `parseJson` made of a 2xx answer; other bodies are thrown away unread, so nothing of them can be passed on. */
  readonly json: unknown;
}

/** Why a call did not bring a usable answer; `ResilientFetch` turns it into a `GatewayError`. */
export class TryFailure extends Error {
  /** Whether the service can have received the request. */
  mayHaveArrived = true;

  constructor(
    readonly kind: 'timeout' | 'network' | 'server-error' | 'invalid',
    readonly retryAfterSeconds: number | undefined,
    options?: { readonly cause: unknown },
  ) {
    super(kind, options);
  }
}

/** Longest a short body that nobody reads is drained for, in milliseconds. */
const drainMs = 1000;

/** `limit` is what ends the try; it is aborted when the body may be read to its end while the answer goes on. */
export async function readAnswer(response: Response, maxBytes: number, limit: AbortController): Promise<ServiceAnswer> {
  if (response.status >= 200 && response.status < 300) {
    const bytes = await bytesOf(response.body as Readable | null, maxBytes);
    // What is unpacked ends where the packed data does. More may follow, without end and read by nobody.
    if (response.headers.has('content-encoding')) limit.abort();
    return { status: response.status, retryAfterSeconds: undefined, json: parse(bytes) };
  }
  const askedSeconds = retryAfterSeconds(response.headers.get('retry-after'), Date.now());
  discard(response, limit);
  if (response.status >= 500) {
    throw new TryFailure('server-error', askedSeconds, { cause: { status: response.status } });
  }
  return { status: response.status, retryAfterSeconds: askedSeconds, json: undefined };
}

/** By events: node-fetch iterates over the stream, which costs as much as parsing what is in it. */
function bytesOf(stream: Readable | null, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (stream === null) {
      resolve(Buffer.alloc(0));
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > maxBytes) stream.destroy(new TryFailure('invalid', undefined));
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
    throw new TryFailure('invalid', undefined, { cause });
  }
}

/**
 * A body not read, because nothing of it may be passed on. A short one is drained, so that the connection can be used
 * again; aborting the limit then ends only what goes on behind it.
 */
function discard({ body: stream, headers }: Response, limit: AbortController): void {
  const body = stream as Readable | null;
  if (body === null) return;
  body.on('error', () => {});
  if (!(Number(headers.get('content-length') ?? Infinity) <= 65_536)) {
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
