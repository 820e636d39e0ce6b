import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors/errors.js';
import { shuttingDown } from './draining.js';
import type { LiveOptions } from './LiveOptions.js';

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
