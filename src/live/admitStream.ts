import type { IncomingMessage, ServerResponse } from 'node:http';
import { holderOf } from '../auth/caller.js';
import { credentialsOf, type Identity } from '../auth/identify.js';
import { GatewayError } from '../errors/errors.js';
import type { GraphQLRequest } from '../operations/GraphQLRequest.js';
import type { OperationFacts } from '../operations/OperationContext.js';
import type { OpenStreams } from './OpenStreams.js';

/** What the endpoints for open connections work with. */
export interface LiveOptions extends GraphQLEndpointOptions {
  readonly streams: OpenStreams;
  /** Browser origins that may open a stream besides our own. */
  readonly allowedOrigins: readonly string[];
  /** Origins that callbacks may go to. */
  readonly callbackOrigins: readonly string[];
  /** Most operations at once on one socket. */
  readonly maxOperations: number;
  /** Milliseconds between two signs of life on an open stream; by default 12 s: proxies close idle ones. */
  readonly keepAliveMs?: number | undefined;
  readonly tracing?: (LiveTracing & HttpTracing) | undefined;
}

/** Spans of sockets and callbacks. */
export interface LiveTracing {
  readonly socket: (
    request: IncomingMessage,
    route: string,
  ) => { run<T>(operation: () => Promise<T>): Promise<T>; end(): void };
  /** After a post of a callback, begun at `startedAt` (of `performance.now()`). */
  readonly onCallback: (url: string, startedAt: number, status: number | undefined) => void;
}

/** A request that stays open: what is known of it at once, and whose it is, once that is known. */
export interface Visit {
  readonly known: Pick<OperationFacts, 'requestId' | 'startedAt' | 'client' | 'peer'>;
  identity?: Identity;
  /** Its operation, where that was read already. */
  readonly asked?: GraphQLRequest;
}

/** Serves one request that stays open. @throws GatewayError when it is refused */
export type Serve = (request: IncomingMessage, response: ServerResponse, visit: Visit) => Promise<void>;

const retryAfterSeconds = 1;
/** Refuses a stream while the process drains. */
export const shuttingDown = new GatewayError('SHUTTING_DOWN', 'The gateway is shutting down', {
  httpStatus: 503,
  retryAfterSeconds,
});

/** The error of a stream that is cut because the process drains. */
export const interruption = {
  message: shuttingDown.message,
  extensions: { code: shuttingDown.code, retryable: shuttingDown.retryable, retryAfterSeconds },
} as const;

/** Why this stream is refused. Any page can open a WebSocket or an event stream anywhere, so the origin is checked. */
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

/** The caller's identity, if it may open a stream; takes no place in the ledger yet. @throws GatewayError */
export async function admitStream(request: IncomingMessage, visit: Visit, options: LiveOptions): Promise<Identity> {
  const refusal = refusalOfStream(request, options);
  if (refusal !== undefined) throw refusal;
  const identity = visit.identity ?? (await options.identify(credentialsOf(request)));
  visit.identity = identity;
  const noPlace = options.ledger.refusalOf('streams', holderOf(identity.caller));
  if (noPlace !== undefined) throw noPlace;
  return identity;
}
