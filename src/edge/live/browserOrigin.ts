import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether a page may open a stream. Browsers let any page open a WebSocket or an event stream to any address, so what CORS
 * does for other requests is done here: the page's origin must be our own or an allowed one. Other clients send no origin.
 */
export function isOriginAllowed(headers: IncomingHttpHeaders, allowed: readonly string[]): boolean {
  const { origin, host } = headers;
  if (origin === undefined || allowed.includes(origin)) return true;
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase();
}
