import { post, type Texts } from './gateway.js';

/** Reads a response piece by piece, each up to a separator. `normalize` is applied to the text not yet returned. */
export function streamReader(response: Response, normalize = (given: string) => given) {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = '';
  return {
    /** The next piece, without its separator; at the end of the response the rest, then undefined. */
    async next(separator: string) {
      for (;;) {
        const end = text.indexOf(separator);
        if (end !== -1) {
          const piece = text.slice(0, end);
          text = text.slice(end + separator.length);
          return piece;
        }
        const { value, done } = await reader.read();
        if (done) {
          const rest = text;
          text = '';
          return rest === '' ? undefined : rest;
        }
        text = normalize(text + decoder.decode(value, { stream: true }));
      }
    },
    cancel: () => reader.cancel(),
  };
}

/** Reads the events of an event stream, each as its name and data; skips comments. */
export function eventReader(response: Response) {
  const pieces = streamReader(response, (text) => text.replaceAll('\r\n', '\n'));
  return {
    async next(): Promise<{ readonly event: string; readonly data: unknown } | undefined> {
      for (;;) {
        const piece = await pieces.next('\n\n');
        if (piece === undefined) return undefined;
        const event = /^event: ?(.*)$/m.exec(piece)?.[1];
        const data = /^data: ?(.*)$/m.exec(piece)?.[1];
        if (event !== undefined) return { event, data: data ? JSON.parse(data) : undefined };
      }
    },
    cancel: () => pieces.cancel(),
  };
}

/** Asks for an event stream, as clients of GraphQL over server-sent events do. */
export function postEvents(
  { origin }: { readonly origin: string },
  body: object,
  headers: Texts = {},
  path = '/graphql/stream',
): Promise<Response> {
  return post(`${origin}${path}`, body, { accept: 'text/event-stream', ...headers });
}
