import type { ServerResponse } from 'node:http';
import type { Quota } from '../admission/Quota.js';
import { smallAnswer } from '../operations/Exit.js';
import { type Answer, partialSuccess } from '../operations/Operation.js';
import { pause } from '../process/pause.js';
import { stopReading } from './BoundedRequest.js';
import type { HttpFacts } from './facts.js';

/** The headers of every answer to an operation, as one list: `setHeader` would cost several times as much. */
export function headersOf(requestId: string): string[] {
  return ['x-request-id', requestId, ...notCached];
}

/**
 * Writes the refusal of a request as JSON when its caller's turn comes, unless an answer has begun or the client has gone.
 * Ends the connection when too many of the caller's refusals wait.
 */
export async function refuseInTurn(facts: HttpFacts, quota: Quota, refusal: Answer): Promise<void> {
  const { response, request } = facts;
  const waitMs = quota.waitOfRefusal(facts);
  if (waitMs !== 0) await pause(waitMs ?? 0); // a moment even for one too many: its body may be about to arrive
  if (response.headersSent || response.destroyed) return;
  const headers = headersOf(facts.requestId);
  if (waitMs === undefined) return refuseAtOnce(response, headers);
  const retryAfterSeconds = refusal.errors[0]?.extensions?.['retryAfterSeconds'];
  // The code only for requests that bring a token (RFC 6750, section 3.1).
  const challenge = request.headers.authorization ? 'Bearer error="invalid_token"' : 'Bearer';
  if (refusal.status === 401) headers.push('www-authenticate', challenge);
  if (retryAfterSeconds !== undefined) headers.push('retry-after', `${retryAfterSeconds}`);
  if (refusal.status === 405) headers.push('allow', 'GET, POST');
  writeJson(facts, refusal, headers);
}

/**
 * Refuses one request too many in a few words, and ends its connection. Without an answer, a proxy would take this process for
 * failed, and send it no requests for a while, of whatever client (nginx: for 10 s). A pipelined request gets no answer: no proxy
 * sends one.
 */
export function refuseAtOnce(response: ServerResponse, headers = notCached): void {
  const { req } = response;
  if (response.socket === null) return void req.socket.destroy();
  response.shouldKeepAlive = false;
  if (!req.complete) stopReading(req);
  const body =
    '{"errors":[{"message":"Too many requests","extensions":{"code":"RATE_LIMITED","retryable":true,"retryAfterSeconds":1}}]}';
  writeBody(response, 429, 'application/json', body, [...headers, 'retry-after', '1']);
}

export function writeJson(facts: HttpFacts, answer: Answer, headers = headersOf(facts.requestId)): void {
  const { response, dialect } = facts;
  const { text, bytes } = answer;
  const status = dialect.statusOf(answer);
  if (status === partialSuccess) response.statusMessage = 'Partial Success';
  headers.push('content-type', dialect.contentType, 'content-length', `${bytes}`);
  // Node.js writes short texts faster, and ASCII, which is the same in both encodings, faster as `latin1`. Of a long text, and of
  // its bytes, it would keep both until the client has read them.
  const isText = bytes <= smallAnswer && bytes === text.length;
  response.writeHead(status, headers).end(isText ? text : Buffer.from(text), 'latin1');
}

/** No cache may keep the answer. `no-transform`: the proxy of Next.js would compress a stream, and so hold its events back. */
export const notCached: readonly string[] = ['cache-control', 'no-store, no-transform'];

/** Writes the answer to a request that is no operation. `headers`: names and values; they say how long it may be cached. */
export function writeBody(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Buffer,
  headers: readonly string[] = notCached,
): void {
  response.writeHead(status, ['content-type', type, ...headers]).end(body);
}
