import { createClient as createSseClient, NetworkError } from 'graphql-sse';
import { createClient as createWsClient, GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws/client';
import type { ErrorCode } from '../errors/errorCodes.js';

/** What is needed of a WebSocket: the browser's own, or that of the package `ws`. */
export interface WebSocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  readonly readyState: number;
  send(text: string): void;
  close(code?: number): void;
}

type OpenWebSocket = (url: string, protocol: string) => WebSocketLike;

export interface ConnectOptions {
  /** Address of the gateway's GraphQL endpoint, such as `https://gateway.example/graphql`. */
  readonly url: string;
  /** `sse` (default) goes through fetch; `ws` through a WebSocket. */
  readonly transport?: 'sse' | 'ws';
  readonly fetch?: typeof fetch;
  /** Opens a socket; needed for `ws` where there is no global `WebSocket`, as in Node.js 20. */
  readonly openWebSocket?: OpenWebSocket;
}

/** One operation on a connection of its own. */
export interface Connection {
  /** Ends when the operation is complete; throws the errors of a refusal, or an Error when the connection is lost. */
  readonly results: AsyncIterable<unknown>;
  /** Ends the results and closes the connection, also while it is being opened. */
  readonly end: () => void;
}

type Connect = (operation: { query: string; variables: Record<string, unknown> }, token?: string) => Connection;

/** @throws TypeError when `ws` is wanted where there is no global `WebSocket`, without `openWebSocket` */
export function connectorOf({ url, transport, fetch: fetcher = fetch, openWebSocket }: ConnectOptions): Connect {
  return transport === 'ws' ? webSockets(url, openWebSocket ?? globalWebSocket()) : eventStreams(url, fetcher);
}

function eventStreams(url: string, fetcher: typeof fetch): Connect {
  return (operation, token) => {
    const client = createSseClient({
      url: `${url.replace(/\/+$/, '')}/stream`,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      retryAttempts: 0,
      fetchFn: async (...request: Parameters<typeof fetch>) => withLateEnd(await fetcher(...request)),
    });
    const reasonOf = (failure: unknown) => (failure instanceof NetworkError && failure.response?.json()) || failure;
    return { results: withReasons(client.iterate(operation), reasonOf), end: () => client.dispose() };
  };
}

/** graphql-sse 2.6 waits for ever when a body ends at once with a result: here the end comes a moment later. */
function withLateEnd(response: Response): Response {
  if (!response.ok || response.body === null) return response;
  const flush = () => new Promise<void>((resolve) => setTimeout(resolve));
  return new Response(response.body.pipeThrough(new TransformStream({ flush })), response);
}

function webSockets(url: string, openWebSocket: OpenWebSocket): Connect {
  return (operation, token) => {
    // Opened here: an error would go unhandled where graphql-ws constructs its socket.
    const socket = openWebSocket(url.replace(/^http/, 'ws'), GRAPHQL_TRANSPORT_WS_PROTOCOL);
    const Opened = Object.assign(class {}, { CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3 });
    let acknowledged = false;
    const end = () => {
      void results.return?.();
      socket.close(1000);
    };
    const client = createWsClient({
      url,
      webSocketImpl: new Proxy(Opened, { construct: () => socket }),
      connectionParams: token === undefined ? {} : { authorization: `Bearer ${token}` },
      retryAttempts: 0,
      on: {
        connected: () => {
          acknowledged = true;
        },
        // Or the client would connect again by itself after the close code 1000.
        closed: end,
      },
    });
    const results = client.iterate(operation);
    return { results: withReasons(results, (failure) => refusalOf(failure, acknowledged)), end };
  };
}

/**
 * A refused socket says why by its close code. 4403 is a refusal before the acknowledgement; after it the token has expired.
 */
function refusalOf(failure: unknown, acknowledged: boolean): unknown {
  const { code: closeCode, reason } = failure as { readonly code?: number; readonly reason?: string };
  if (closeCode !== 4401 && closeCode !== 4403) return failure;
  const code: ErrorCode = closeCode === 4401 || acknowledged ? 'UNAUTHENTICATED' : 'FORBIDDEN';
  return { message: reason || 'The gateway refused the connection', extensions: { code } };
}

/** The results; a failure is thrown as the reason that the gateway gave. */
async function* withReasons(results: AsyncIterable<unknown>, reasonOf: (failure: unknown) => unknown) {
  try {
    yield* results;
  } catch (failure) {
    throw await reasonOf(failure);
  }
}

function globalWebSocket(): OpenWebSocket {
  const { WebSocket } = globalThis as unknown as { WebSocket?: new (url: string, protocol: string) => WebSocketLike };
  if (WebSocket === undefined) throw new TypeError('openWebSocket is needed: this runtime has no WebSocket');
  return (url, protocol) => new WebSocket(url, protocol);
}
