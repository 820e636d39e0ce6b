/** What one connection is opened with. */
export interface StreamRequest {
  readonly url: string;
  readonly token: string | undefined;
  readonly body: { readonly query: string; readonly variables: Readonly<Record<string, unknown>> };
  readonly signal: AbortSignal;
}

/**
 * The results of a subscription over server-sent events (protocol graphql-sse, one stream per operation). Ends when the
 * gateway says that it is complete.
 *
 * @throws the body of a refusal, or an Error when the stream broke off
 */
export async function* eventStream(request: StreamRequest, fetcher: typeof fetch): AsyncGenerator<unknown> {
  const response = await fetcher(`${request.url.replace(/\/+$/, '')}/stream`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      ...(request.token !== undefined && { authorization: `Bearer ${request.token}` }),
    },
    body: JSON.stringify(request.body),
    signal: request.signal,
  });
  if (!response.ok || response.body === null) throw await response.json();
  let buffered = '';
  const decoder = new TextDecoder();
  for await (const chunk of chunksOf(response.body)) {
    const events = (buffered + decoder.decode(chunk, { stream: true })).split('\n\n');
    buffered = events.pop() ?? '';
    for (const event of events) {
      const fields = fieldsOf(event);
      if (fields['event'] === 'complete') return;
      if (fields['event'] === 'next') yield JSON.parse(fields['data'] ?? 'null');
    }
  }
  throw new Error('The stream broke off');
}

/** Not every browser can iterate over a stream itself. */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    reader.releaseLock();
  }
}

function fieldsOf(event: string): Readonly<Record<string, string>> {
  const lines = event.split('\n').filter((line) => !line.startsWith(':'));
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
}
