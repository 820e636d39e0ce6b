export interface ConnectOptions {
  /** Address of the GraphQL endpoint of the gateway or its router, such as `https://gateway.example/graphql`; on a page also a path. */
  readonly url: string;
  readonly fetch?: typeof fetch | undefined;
}

/** Idle timeout: a connection that brings nothing for so long is dead, since the gateway sends something every 12 seconds. */
const silenceLimitMs = 40_000;

/** A result or, last, why there are no more: the gateway refuses, the connection is lost or silent, or `signal` aborts. */
interface Received<Data> {
  readonly result?: { readonly data?: Data | null };
  readonly failure?: Error & { readonly isElsewhere?: boolean }; // what answered is probably not a gateway
}

/** Opens a subscription, by server-sent events, until the gateway ends it. Leaving the loop closes the connection. Throws nothing. */
export async function* subscribe<Data>(
  address: URL,
  operation: { readonly query: string; readonly variables: Record<string, unknown> },
  token: string | undefined,
  signal: AbortSignal,
  fetcher = fetch,
): AsyncGenerator<Received<Data>, void, undefined> {
  const connection = new AbortController();
  const close = () => connection.abort(signal.reason);
  signal.addEventListener('abort', close);
  const giveUp = () => connection.abort(new TypeError(`The network was silent for ${silenceLimitMs / 1000} seconds`));
  let timer = setTimeout(giveUp, silenceLimitMs);
  try {
    signal.throwIfAborted();
    const response = await fetcher(address.href, {
      method: 'POST',
      headers: {
        accept: 'text/event-stream',
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(operation),
      signal: connection.signal,
    });
    const { ok, status, body } = response;
    const type = response.headers.get('content-type') ?? '';
    if (!ok || body === null || !type.startsWith('text/event-stream')) {
      const result: unknown = await response.json().catch(() => undefined); // read by `problemsOf`
      const isElsewhere = status < 500 && status !== 408 && status !== 429;
      const message = `The gateway answered with status ${status} and ${type || 'no type'}`;
      throw Object.assign(new Error(message), { result, status, isElsewhere });
    }
    const reader = body.pipeThrough(new TextDecoderStream(), { signal: connection.signal }).getReader();
    let text = '';
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      clearTimeout(timer);
      timer = setTimeout(giveUp, silenceLimitMs);
      const messages = (text + read.value).split(/\n\r?\n/);
      text = messages.pop() ?? '';
      // A comment is a sign of life; `complete` has no data. U+2028 is no line break here, as it is for `.` and `$`.
      for (const message of messages) {
        const [, data] = /^data: ?(\S[^\r\n]*)/m.exec(message) ?? [];
        if (data !== undefined) yield { result: JSON.parse(data) };
      }
    }
  } catch (error) {
    yield { failure: connection.signal.reason ?? error }; // from an aborted `fetch`, Safari throws an error of its own
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', close);
    connection.abort();
  }
}

/** @throws TypeError for a `url` that is no address, or has credentials, which `fetch` refuses */
export function addressOf(url: string): URL {
  const base = (globalThis as { readonly location?: { readonly href: string } }).location?.href; // of a page
  const address = URL.canParse(url, base) && new URL(url, base);
  if (address && /^https?:$/.test(address.protocol) && address.username + address.password === '') return address;
  const found = String(url).replace(/\/\/.*@/, '//…@');
  throw new TypeError(`url must be like https://gateway.example/graphql, without credentials (found: ${found})`);
}
