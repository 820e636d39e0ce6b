import type { IncomingMessage } from 'node:http';
import type { Ledger } from '../admission/Ledger.js';
import { holderOf } from '../auth/caller.js';
import { credentialsOf, type Identify, type Identity } from '../auth/identify.js';
import { GatewayError } from '../errors/errors.js';
import type { Unread } from '../http/unread.js';
import type { Pipeline } from '../operations/Pipeline.js';
import type { OpenStreams } from './OpenStreams.js';

/** What every endpoint for what stays open works with. */
export interface LiveOptions {
  readonly pipeline: Pipeline;
  readonly identify: Identify;
  readonly streams: OpenStreams;
  readonly ledger: Ledger;
  readonly unread: Unread;
  /** Browser origins that may open a stream besides our own. */
  readonly allowedOrigins: readonly string[];
  /** Between two signs of life, in milliseconds. */
  readonly keepAliveMs: number;
}

const shuttingDown = new GatewayError('SHUTTING_DOWN', 'The gateway is shutting down', { httpStatus: 503 });

/** The error of a stream that is cut because the process drains. */
export const interruption = {
  message: shuttingDown.message,
  extensions: { code: shuttingDown.code, retryable: shuttingDown.retryable },
} as const;

/**
 * Why nobody may open a stream. Browsers let any page open a WebSocket or an event stream anywhere, so the origin is
 * checked here: it must be our own or an allowed one.
 */
export function refusalOfStream(
  { headers: { origin, host } }: IncomingMessage,
  { allowedOrigins, streams }: Pick<LiveOptions, 'allowedOrigins' | 'streams'>,
): GatewayError | undefined {
  const isOwn = () => URL.canParse(origin ?? '') && new URL(origin ?? '').host === host?.toLowerCase();
  if (origin !== undefined && !allowedOrigins.includes(origin) && !isOwn()) {
    return new GatewayError('FORBIDDEN', 'This origin is not allowed (CORS_ORIGINS)', { httpStatus: 403 });
  }
  return streams.draining ? shuttingDown : undefined;
}

/** Who is calling, if they may open a stream; takes no place yet. @throws GatewayError */
export async function admitStream(request: IncomingMessage, options: LiveOptions): Promise<Identity> {
  const refusal = refusalOfStream(request, options);
  if (refusal !== undefined) throw refusal;
  const identity = await options.identify(credentialsOf(request));
  const noPlace = options.ledger.refusalOf('streams', holderOf(identity.caller));
  if (noPlace !== undefined) throw noPlace;
  return identity;
}
