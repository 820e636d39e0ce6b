import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.js';
import type { RequestLimits } from '../graphqlRequest.js';
import { credentialsOf, type Identify, type Identity } from '../identify.js';
import { isOriginAllowed } from './browserOrigin.js';
import type { LiveOperations } from './LiveOperations.js';
import type { OpenStreams } from './OpenStreams.js';

/** What every endpoint that answers with a stream works with. */
export interface LiveEndpointOptions {
  readonly operations: LiveOperations;
  readonly identify: Identify;
  readonly streams: OpenStreams;
  /** Browser origins that may open a stream besides our own. */
  readonly allowedOrigins: readonly string[];
  readonly requestLimits: RequestLimits;
  /** Most operations at once on one stream. */
  readonly maxOperations: number;
  /** Between two signs of life, in milliseconds. */
  readonly keepAliveMs: number;
}

/** Runs `serve`; whatever it throws becomes an answer in GraphQL's form. Never rejects. */
export async function answering(
  response: ServerResponse,
  operations: LiveOperations,
  serve: (requestId: string) => Promise<void>,
): Promise<void> {
  const requestId = randomUUID();
  response.setHeader('x-request-id', requestId);
  response.setHeader('cache-control', 'no-store');
  try {
    await serve(requestId);
  } catch (error) {
    const masked = operations.mask(error, requestId);
    if (response.headersSent || response.destroyed) return;
    const status = error instanceof GatewayError ? (error.httpStatus ?? 400) : 500;
    if (status === 401) response.setHeader('www-authenticate', 'Bearer');
    response.setHeader('connection', 'close'); // what was not read of the body is not the next request
    sendJson(response, status, { errors: [masked] });
  }
}

/** Who is calling, if a stream may be opened at all. @throws GatewayError */
export async function admitStream(request: IncomingMessage, options: LiveEndpointOptions): Promise<Identity> {
  if (!isOriginAllowed(request.headers, options.allowedOrigins)) {
    throw new GatewayError('FORBIDDEN', 'This origin is not allowed (CORS_ORIGINS)', { httpStatus: 403 });
  }
  refuseWhenFull(options.streams);
  return await options.identify(credentialsOf(request));
}

/** @throws GatewayError RATE_LIMITED with status 503 */
export function refuseWhenFull(streams: OpenStreams): void {
  if (streams.hasRoom) return;
  const message = streams.draining ? 'The gateway is shutting down' : 'No more open streams (MAX_CONNECTIONS)';
  throw new GatewayError('RATE_LIMITED', message, { httpStatus: 503 });
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}
