import type { IncomingMessage, ServerResponse } from 'node:http';
import { holderOf } from '../auth/caller.js';
import { credentialsOf, type Identity } from '../auth/identify.js';
import { GatewayError } from '../errors/errors.js';
import type { GraphQLRequest } from '../operations/GraphQLRequest.js';
import type { OperationFacts } from '../operations/OperationContext.js';
import { shuttingDown } from './draining.js';
import type { LiveOptions } from './LiveOptions.js';

/** A request that stays open, and what is known about it so far. */
export interface Visit {
  readonly known: Pick<OperationFacts, 'requestId' | 'startedAt' | 'client' | 'peer'>;
  identity?: Identity;
  /** Its operation, if it was already read. */
  readonly asked?: GraphQLRequest;
}

/** Serves one request that stays open. @throws GatewayError when it is refused */
export type Serve = (request: IncomingMessage, response: ServerResponse, visit: Visit) => Promise<void>;

/** Why to refuse this stream, if so. A page can open a WebSocket or event stream to any host, so the origin is checked. */
export function refusalOfStream(
  { headers: { origin, host } }: IncomingMessage,
  { allowedOrigins, streams }: LiveOptions,
): GatewayError | undefined {
  const isOwn = () => URL.canParse(origin ?? '') && new URL(origin ?? '').host === host?.toLowerCase();
  if (origin !== undefined && !allowedOrigins.includes(origin) && !isOwn()) {
    return new GatewayError('FORBIDDEN', 'This origin is not allowed (CORS_ORIGINS)', { httpStatus: 403 });
  }
  return streams.draining ? shuttingDown : undefined;
}

/** Returns the caller's identity if it may open a stream; takes no place in the ledger yet. @throws GatewayError */
export async function admitStream(request: IncomingMessage, visit: Visit, options: LiveOptions): Promise<Identity> {
  const refusal = refusalOfStream(request, options);
  if (refusal !== undefined) throw refusal;
  const identity = visit.identity ?? (await options.identify(credentialsOf(request)));
  visit.identity = identity;
  const noPlace = options.ledger.refusalOf('streams', holderOf(identity.caller));
  if (noPlace !== undefined) throw noPlace;
  return identity;
}
