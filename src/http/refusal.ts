import type { ServerResponse } from 'node:http';
import type { GraphQLFormattedError } from 'graphql';
import { GatewayError } from '../errors/errors.js';
import { isBug } from '../errors/maskError.js';

/** Why a request is not executed, in the form in which that leaves. */
export interface Refusal {
  readonly status: number;
  readonly errors: readonly GraphQLFormattedError[];
  /** The methods to name with status 405. */
  readonly allow?: string | undefined;
}

export interface RefusalOptions {
  readonly requestId: string;
  /** The form in which the error leaves; sees to it that a bug is logged. */
  readonly mask: (error: unknown) => GraphQLFormattedError;
}

/** Answers a request with the error that refused it, unless an answer has begun or nobody is left to read it. */
export function sendRefusal(response: ServerResponse, error: unknown, { requestId, mask }: RefusalOptions): void {
  const errors = [mask(error)];
  if (response.headersSent || response.destroyed) return;
  const allow = error instanceof GatewayError ? error.allow : undefined;
  writeRefusal(response, requestId, { status: refusalStatus(error), errors, allow });
}

/** The one form of a refusal over HTTP, on every path and for every kind of stream. */
export function writeRefusal(response: ServerResponse, requestId: string, { status, errors, allow }: Refusal): void {
  if (status === 401) response.setHeader('www-authenticate', 'Bearer');
  if (allow !== undefined) response.setHeader('allow', allow);
  const retryAfterSeconds = errors[0]?.extensions?.['retryAfterSeconds'];
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', String(retryAfterSeconds));
  const text = JSON.stringify({ errors });
  response.writeHead(status, [
    ...['x-request-id', requestId, 'cache-control', 'no-store'],
    ...['content-type', 'application/json; charset=utf-8', 'content-length', `${Buffer.byteLength(text)}`],
  ]);
  response.end(text);
}

/** The HTTP status of an answer that says nothing but this error. */
export function refusalStatus(error: unknown): number {
  if (error instanceof GatewayError) return error.httpStatus ?? 400;
  return isBug(error) ? 500 : 400;
}
