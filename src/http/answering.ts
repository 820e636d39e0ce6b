import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from '../operations/answer.js';
import type { RequestFacts } from '../operations/OperationContext.js';
import type { Operations } from '../operations/Operations.js';
import { pause } from '../process/pause.js';
import { type AnswerForm, contentTypeOf, readAccept, statusIn } from './mediaTypes.js';

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/;

/** The request id: the caller's, if well formed, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : crypto.randomUUID();
}

/** A caller's limit on root fields, and what is left of it. */
export interface RateLimit {
  /** Root fields of operations per clock minute. */
  readonly perMinute: number;
  readonly left: number;
  readonly resetSeconds: number;
}

/** Header names and values (draft-ietf-httpapi-ratelimit-headers-11, May 2026, sections 3 and 4; quota unit `requests`). */
export function rateLimitHeaders({ perMinute, left, resetSeconds }: RateLimit): readonly string[] {
  const policy = `"root-fields";q=${perMinute};w=60`;
  return ['ratelimit-policy', policy, 'ratelimit', `"root-fields";r=${left};t=${resetSeconds}`];
}

/** Values of headers that do not come from the answer itself. */
export interface AnswerHeaders {
  readonly requestId: string;
  readonly form: AnswerForm | undefined;
  readonly rateLimit: RateLimit | undefined;
}

/**
 * Writes the refusal of a request as JSON when its caller's turn comes, unless an answer has begun or the client has gone. Destroys the
 * connection when too many of the caller's refusals wait.
 */
export async function refuseInTurn(
  response: ServerResponse,
  operations: Operations,
  refusal: Answer,
  facts: RequestFacts,
): Promise<void> {
  const { caller, remoteAddress } = facts;
  const waitMs = operations.waitOfRefusal(facts);
  // Not `response.socket`: a pipelined response has none yet.
  if (waitMs === Number.POSITIVE_INFINITY) return void response.req.socket.destroy();
  if (waitMs > 0) await pause(waitMs, { ref: false });
  if (response.headersSent || response.destroyed) return;
  const form = readAccept(response.req.headers.accept).json;
  const status = statusIn(form, refusal);
  const retryAfterSeconds = refusal.errors[0]?.extensions?.['retryAfterSeconds'];
  const more: string[] = [];
  if (status === 401) more.push('www-authenticate', 'Bearer');
  if (retryAfterSeconds !== undefined) more.push('retry-after', `${retryAfterSeconds}`);
  const rateLimit = caller && operations.rateLimitOf({ caller, remoteAddress });
  writeJson(response, status, refusal, { requestId: facts.requestId, form, rateLimit }, more);
}

/** Writes an answer as JSON with these headers and `more`, a list of names and values. */
export function writeJson(
  response: ServerResponse,
  status: number,
  { allow, text, bytes }: Answer,
  { requestId, form, rateLimit }: AnswerHeaders,
  more: readonly string[] = [],
): void {
  // In one list: `setHeader` would cost several times as much.
  const headers = ['x-request-id', requestId, 'cache-control', 'no-store'];
  headers.push('content-type', contentTypeOf(form), 'content-length', `${bytes}`, ...more);
  if (allow !== undefined) headers.push('allow', allow);
  if (rateLimit !== undefined) headers.push(...rateLimitHeaders(rateLimit));
  // ASCII text is the same in both encodings, and Node.js writes `latin1` faster.
  response.writeHead(status, headers).end(text, bytes === text.length ? 'latin1' : 'utf8');
}

/** Idle timeout of a connection that a page is sent on, in milliseconds. */
const pageStallMs = 30_000;

/** Writes a page that must not be cached. */
export function writePage(response: ServerResponse, status: number, type: string, page: string | Buffer): void {
  response.setTimeout(pageStallMs).writeHead(status, ['content-type', type, 'cache-control', 'no-store']).end(page);
}
