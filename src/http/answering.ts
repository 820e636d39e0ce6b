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

/** Names and values (draft-ietf-httpapi-ratelimit-headers-11). */
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
  const { allow, errors, text } = refusal;
  const { json } = readAccept(response.req.headers.accept);
  const status = statusIn(json, refusal.status);
  const retryAfterSeconds = errors[0]?.extensions?.['retryAfterSeconds'];
  if (status === 401) response.setHeader('www-authenticate', 'Bearer');
  if (allow !== undefined) response.setHeader('allow', allow);
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', String(retryAfterSeconds));
  const [policyName = '', policy = '', limitName = '', limit = ''] = rateLimit ? rateLimitHeaders(rateLimit) : [];
  if (rateLimit !== undefined) response.setHeader(policyName, policy).setHeader(limitName, limit);
  response.setHeader('x-request-id', requestId);
  response.setHeader('content-length', Buffer.byteLength(text));
  writePage(response, status, contentTypeOf(json), text);
}

/** Writes text that must not be cached. */
export function writePage(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, ['content-type', type, 'cache-control', 'no-store']).end(text);
}
