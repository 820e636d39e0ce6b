import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createWsClient, GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws/client';
import type { ErrorCode } from './errorCodes.js';

/** The part of a WebSocket that is used; the browser's own and that of the package `ws` have it. */
export interface WebSocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  readonly readyState: number;
  send(text: string): void;
  close(code?: number): void;
}

export interface ConnectOptions {
  /** Address of the gateway's GraphQL endpoint, such as `https://gateway.example/graphql`; on a page also a path. */
  readonly url: string;
  /** `sse` (default) goes through fetch; `ws` through a WebSocket. */
  readonly transport?: 'sse' | 'ws';
  readonly fetch?: typeof fetch;
  /** Opens a socket; needed for `ws` where there is no global `WebSocket`, as in Node.js 20. */
  readonly openWebSocket?: (url: string, protocol: string) => WebSocketLike;
}

/** Opens a connection for one operation; `end` ends its results and closes it, also while it is being opened. */
type Connect = (
  operation: { query: string; variables: Record<string, unknown> },
  token?: string,
) => { readonly results: AsyncIterable<unknown>; readonly end: () => void };

/** Idle timeout: a connection that brings nothing for so long is dead, since the gateway sends something every 12 seconds. */
const silenceLimitMs = 40_000;
/** Ping interval of a WebSocket. Browsers hide the gateway's pings from pages, so pongs to our own show that it is alive. */
const pingMs = 12_000;

/** @throws TypeError for a `url` that is no address */
export function eventStreams({ url, fetch: fetcher = fetch }: ConnectOptions): Connect {
  const address = parseUrl(url, ['http:', 'https:']);
  address.pathname = `${address.pathname.replace(/\/+$/, '')}/stream`;
  return (operation, token) => {
    const end = (reason?: Error) => {
      silence.stop();
      void results.throw?.(reason);
      client.dispose();
    };
    const silence = limitSilence(end);
    const client = createSseClient({
      url: address.href,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      retryAttempts: 0,
      fetchFn: async (...request: Parameters<typeof fetch>) => adapted(await fetcher(...request), silence.restart),
    });
    const results = client.iterate(operation);
    return { results, end };
  };
}

async function adapted(response: Response, onChunk: () => void): Promise<Response> {
  // The error that graphql-sse throws holds the response, so the gateway's reason is found in it.
  if (!response.ok) return Object.assign(response, { result: await response.json().catch(() => undefined) });
  const body = response.body?.pipeThrough(
    new TransformStream({
      transform: (chunk, controller) => {
        onChunk();
        controller.enqueue(chunk);
      },
      // graphql-sse 2.6 waits for ever when a body ends at once with a result: here the end comes a moment later.
      flush: () => new Promise<void>((resolve) => setTimeout(resolve)),
    }),
  );
  return new Response(body, response);
}

/** @throws TypeError for a `url` that is no address, or where there is no WebSocket */
export function webSockets({ url, openWebSocket = globalWebSocket() }: ConnectOptions): Connect {
  const address = parseUrl(url, ['http:', 'https:', 'ws:', 'wss:']).href.replace(/^http/, 'ws');
  return (operation, token) => {
    // Opened here: an error would go unhandled where graphql-ws constructs its socket.
    const socket = openWebSocket(address, GRAPHQL_TRANSPORT_WS_PROTOCOL);
    const Opened = Object.assign(class {}, { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 });
    let acknowledged = false;
    const close = () => {
      silence.stop();
      void results.return?.();
      socket.close(1000);
    };
    const end = (reason?: Error) => {
      // The results end first; otherwise they would wait for a dead peer to acknowledge the connection or its end.
      void results.throw?.(reason);
      close();
    };
    const silence = limitSilence(end);
    const client = createWsClient({
      url: address,
      webSocketImpl: new Proxy(Opened, { construct: () => socket }),
      connectionParams: token === undefined ? {} : { authorization: `Bearer ${token}` },
      retryAttempts: 0,
      keepAlive: pingMs,
      on: {
        message: silence.restart,
        // Browsers throttle the timers of background pages: a late ping must leave time for its pong.
        ping: silence.restart,
        connected: () => {
          acknowledged = true;
        },
        // Otherwise graphql-ws would reconnect by itself after the close code 1000.
        closed: close,
      },
    });
    const results = client.iterate(operation);
    return { results: withRefusal(results, () => acknowledged), end };
  };
}

/** Calls `onSilence` after {@link silenceLimitMs}, unless it is restarted or stopped before. */
function limitSilence(onSilence: (reason: Error) => void) {
  const giveUp = () => onSilence(new Error(`The gateway sent nothing for ${silenceLimitMs / 1000} seconds`));
  let timer: ReturnType<typeof setTimeout> | undefined = setTimeout(giveUp, silenceLimitMs);
  return {
    restart: () => {
      if (timer === undefined) return;
      clearTimeout(timer);
      timer = setTimeout(giveUp, silenceLimitMs);
    },
    stop: () => {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

/** Turns the close code of a refusal into an error: 4403 is FORBIDDEN, but an expired token after the acknowledgement. */
async function* withRefusal(results: AsyncIterable<unknown>, isAcknowledged: () => boolean) {
  try {
    yield* results;
  } catch (failure) {
    const { code: closeCode, reason } = failure as { readonly code?: number; readonly reason?: string };
    if (closeCode !== 4401 && closeCode !== 4403) throw failure;
    const code: ErrorCode = closeCode === 4401 || isAcknowledged() ? 'UNAUTHENTICATED' : 'FORBIDDEN';
    throw { message: reason || 'The gateway refused the connection', extensions: { code } };
  }
}

function parseUrl(url: string, protocols: readonly string[]): URL {
  const page = (globalThis as { readonly location?: { readonly href: string } }).location;
  try {
    const parsed = new URL(url, page?.href);
    if (protocols.includes(parsed.protocol)) return parsed;
  } catch {
    // Not a URL: refused below, like another protocol.
  }
  throw new TypeError(`url must be an address such as https://gateway.example/graphql (found: ${url})`);
}

function globalWebSocket() {
  const { WebSocket } = globalThis as unknown as { WebSocket?: new (url: string, protocol: string) => WebSocketLike };
  if (WebSocket === undefined) throw new TypeError('openWebSocket is needed: this runtime has no WebSocket');
  return (url: string, protocol: string) => new WebSocket(url, protocol);
}
