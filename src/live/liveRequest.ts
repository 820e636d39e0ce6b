import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Ledger } from '../admission/Ledger.js';
import { holderOf } from '../auth/caller.js';
import { credentialsOf, type Identify, type Identity } from '../auth/identify.js';
import { GatewayError } from '../errors/errors.js';
import type { RequestLimits } from '../http/graphqlRequest.js';
import { sendRefusal } from '../http/refusal.js';
import { requestIdOf } from '../http/requestIdOf.js';
import type { Unread } from '../http/unread.js';
import type { LiveOperations } from '../operations/LiveOperations.js';
import { isOriginAllowed } from './browserOrigin.js';
import type { OpenStreams } from './OpenStreams.js';

/** What every endpoint that answers with a stream works with. */
export interface LiveEndpointOptions {
  readonly operations: LiveOperations;
  readonly identify: Identify;
  readonly streams: OpenStreams;
  readonly ledger: Ledger;
  readonly unread: Unread;
  /** Browser origins that may open a stream besides our own. */
  readonly allowedOrigins: readonly string[];
  readonly requestLimits: RequestLimits;
  /** Between two signs of life, in milliseconds. */
  readonly keepAliveMs: number;
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly operations: LiveOperations;
}

/** Runs `serve`; whatever it throws becomes an answer in GraphQL's form. Never rejects. */
export async function answering(
  { request, response, operations }: Exchange,
  serve: (requestId: string) => Promise<void>,
): Promise<void> {
  const requestId = requestIdOf(request);
  response.setHeader('x-request-id', requestId);
  response.setHeader('cache-control', 'no-store');
  try {
    await serve(requestId);
  } catch (error) {
    sendRefusal(response, error, { requestId, mask: (each) => operations.mask(each, requestId).formatted });
  }
}

/** Who is calling, if a stream may be opened at all. It takes no place yet. @throws GatewayError */
export async function admitStream(request: IncomingMessage, options: LiveEndpointOptions): Promise<Identity> {
  const { streams, ledger, allowedOrigins, identify } = options;
  if (!isOriginAllowed(request.headers, allowedOrigins)) {
    throw new GatewayError('FORBIDDEN', 'This origin is not allowed (CORS_ORIGINS)', { httpStatus: 403 });
  }
  if (streams.draining) throw new GatewayError('RATE_LIMITED', 'The gateway is shutting down', { httpStatus: 503 });
  const identity = await identify(credentialsOf(request));
  const refusal = ledger.refusalOf('streams', holderOf(identity.caller));
  if (refusal !== undefined) throw refusal;
  return identity;
}
