import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from '../operations/Exit.js';
import { type MediaType, readAccept, statusIn } from './mediaTypes.js';

const requestIdForm = /^[A-Za-z0-9._-]{1,128}$/;

/** The request id: the caller's, if well formed, or a new one. */
export function requestIdOf({ headers }: IncomingMessage): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : randomUUID();
}

/** The limit of operations that applies to a caller. */
export interface RateLimit {
  /** Root fields of operations per clock minute. */
  readonly perMinute: number;
  readonly left: number;
  readonly resetSeconds: number;
}

/** Names and values (draft-ietf-httpapi-ratelimit-headers-11 of May 2026, sections 3 and 4; the quota unit is `requests`). */
export function rateLimitHeaders({ perMinute, left, resetSeconds }: RateLimit): readonly string[] {
  const policy = `"root-fields";q=${perMinute};w=60`;
  return ['ratelimit-policy', policy, 'ratelimit', `"root-fields";r=${left};t=${resetSeconds}`];
}

/** The Content-Type of an answer; where the client takes no JSON, that of a refusal. */
export function contentTypeOf(mediaType: MediaType | undefined): string {
  const type = mediaType === 'application/graphql-response+json' ? mediaType : 'application/json';
  return `${type}; charset=utf-8`;
}

/** Writes a refusal as JSON, unless an answer has begun or the client has gone. */
export function writeRefusal(
  response: ServerResponse,
  requestId: string,
  refusal: Answer,
  rateLimit?: RateLimit | undefined,
): void {
  if (response.headersSent || response.destroyed) return;
  const { allow, errors, text, bytes } = refusal;
  const { json } = readAccept(response.req.headers.accept);
  const status = statusIn(json, refusal);
  const retryAfterSeconds = errors[0]?.extensions?.['retryAfterSeconds'];
  // In one list: `setHeader` would cost several times as much.
  const headers = [
    ...['content-type', contentTypeOf(json), 'cache-control', 'no-store'],
    ...['x-request-id', requestId, 'content-length', `${bytes}`],
  ];
  if (status === 401) headers.push('www-authenticate', 'Bearer');
  if (allow !== undefined) headers.push('allow', allow);
  if (retryAfterSeconds !== undefined) headers.push('retry-after', `${retryAfterSeconds}`);
  if (rateLimit !== undefined) headers.push(...rateLimitHeaders(rateLimit));
  response.writeHead(status, headers).end(text, bytes === text.length ? 'latin1' : 'utf8');
}

/** Writes text that must not be cached. */
export function writePage(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, ['content-type', type, 'cache-control', 'no-store']).end(text);
}
