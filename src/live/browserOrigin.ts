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

/**
 * Whether a GET comes from an EventSource or from no browser. Any page can make a browser send a GET without an origin, for an
 * image or for a fetch whose answer it does not see; browsers say so in `Sec-Fetch` headers, which no page can change.
 */
export function mayBeEventSource(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-mode': mode = 'cors', 'sec-fetch-dest': destination = 'empty' } = headers;
  return (mode === 'cors' || mode === 'same-origin') && destination === 'empty';
}
