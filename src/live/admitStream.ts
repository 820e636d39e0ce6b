import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Ledger } from '../admission/Ledger.js';
import { holderOf } from '../auth/caller.js';
import { credentialsOf, type Identify, type Identity } from '../auth/identify.js';
import { GatewayError } from '../errors/errors.js';
import type { RequestLimits } from '../http/graphqlRequest.js';
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
  readonly requestLimits: RequestLimits;
  /** Between two signs of life, in milliseconds. */
  readonly keepAliveMs: number;
}

/** What is refused, or cut, because the process drains. */
export function shuttingDown(): GatewayError {
  return new GatewayError('SHUTTING_DOWN', 'The gateway is shutting down', { httpStatus: 503 });
}

/** The same as an error on a stream. */
export const interruption = {
  message: shuttingDown().message,
  extensions: { code: 'SHUTTING_DOWN', retryable: true },
} as const;

/** Who is calling, if a stream may be opened at all. It takes no place yet. @throws GatewayError */
export async function admitStream(request: IncomingMessage, options: LiveOptions): Promise<Identity> {
  const { streams, ledger, allowedOrigins, identify } = options;
  if (!isOriginAllowed(request.headers, allowedOrigins)) {
    throw new GatewayError('FORBIDDEN', 'This origin is not allowed (CORS_ORIGINS)', { httpStatus: 403 });
  }
  if (streams.draining) throw shuttingDown();
  const identity = await identify(credentialsOf(request));
  const refusal = ledger.refusalOf('streams', holderOf(identity.caller));
  if (refusal !== undefined) throw refusal;
  return identity;
}

/**
 * Whether a page may open a stream. Browsers let any page open a WebSocket or an event stream to any address, so what CORS
 * does for other requests is done here: the page's origin must be our own or an allowed one. Other clients send no origin.
 */
export function isOriginAllowed(headers: IncomingHttpHeaders, allowed: readonly string[]): boolean {
  const { origin, host } = headers;
  if (origin === undefined || allowed.includes(origin)) return true;
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase();
}
