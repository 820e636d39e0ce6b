import { createClient } from 'graphql-sse';

export interface ConnectOptions {
  /** Address of the gateway's GraphQL endpoint, such as `https://gateway.example/graphql`; on a page also a path. */
  readonly url: string;
  readonly fetch?: typeof fetch;
}

/** Opens a connection for one operation; `end` ends its results and closes it, also while it is being opened. */
type Connect = (
  operation: { query: string; variables: Record<string, unknown> },
  token?: string,
) => { readonly results: AsyncIterable<unknown>; readonly end: () => void };

/** Idle timeout: a connection that brings nothing for so long is dead, since the gateway sends something every 12 seconds. */
const silenceLimitMs = 40_000;

/** @throws TypeError for a `url` that is no address */
export function eventStreams({ url, fetch: fetcher = fetch }: ConnectOptions): Connect {
  const address = parseUrl(url);
  address.pathname = `${address.pathname.replace(/\/+$/, '')}/stream`;
  return (operation, token) => {
    const end = (reason?: Error) => {
      silence.stop();
      void results.throw?.(reason);
      client.dispose();
    };
    const silence = limitSilence(end);
    const client = createClient({
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

function parseUrl(url: string): URL {
  const page = (globalThis as { readonly location?: { readonly href: string } }).location;
  try {
    const parsed = new URL(url, page?.href);
    if (['http:', 'https:'].includes(parsed.protocol)) return parsed;
  } catch {
    // Not a URL: refused below, like another protocol.
  }
  throw new TypeError(`url must be an address such as https://gateway.example/graphql (found: ${url})`);
}
