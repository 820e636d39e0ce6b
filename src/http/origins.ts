import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors/errors.js';
import { badRequest } from '../operations/GraphQLRequest.js';

/** Any page can open a WebSocket or an event stream to any host. @throws GatewayError unless the page is ours or allowed */
export function refuseForeignPage({ headers }: IncomingMessage, allowedOrigins: readonly string[]): void {
  const { origin, host } = headers;
  const isOwn = () => URL.canParse(origin ?? '') && new URL(origin ?? '').host === host?.toLowerCase();
  if (origin === undefined || allowedOrigins.includes(origin) || isOwn()) return;
  throw new GatewayError('FORBIDDEN', 'This origin is not allowed (CORS_ORIGINS)', { httpStatus: 403 });
}

/** Any page can make a browser send a GET without an origin, such as for an image; `Sec-Fetch` headers reveal it. */
export function refuseOtherGets({ method, headers }: IncomingMessage): void {
  const { 'sec-fetch-mode': mode = 'cors', 'sec-fetch-dest': destination = 'empty' } = headers;
  if (method !== 'GET' || ((mode === 'cors' || mode === 'same-origin') && destination === 'empty')) return;
  throw badRequest('A GET from a page must be that of an EventSource', 400);
}
