import { connect } from 'node:net';
import { atEnd } from './atEnd.js';

interface RawHttpAnswer {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** A connection on which a test writes the bytes of its requests itself, and reads the answers in order. */
export function rawHttp(origin: string) {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  let text = '';
  let isOver = false;
  let changed = () => {};
  const change = () => changed();
  socket.on('error', () => {}); // tests look at the close instead
  atEnd(() => socket.destroy());
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
    change();
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve())).then(() => {
    isOver = true;
    change();
  });
  return {
    socket,
    closed,
    write: (...lines: readonly string[]) => socket.write(lines.join('\r\n'), 'latin1'),
    /** The next answer, framed by Content-Length or chunks; undefined when the connection closes before it is complete. */
    async answer(): Promise<RawHttpAnswer | undefined> {
      for (;;) {
        const parsed = parse(text);
        if (parsed !== undefined) {
          text = text.slice(parsed.length);
          return parsed.answer;
        }
        if (isOver) return undefined;
        await new Promise<void>((resolve) => {
          changed = resolve;
        });
      }
    },
    end: () => socket.destroy(),
  };
}

function parse(text: string): { readonly answer: RawHttpAnswer; readonly length: number } | undefined {
  const endOfHead = text.indexOf('\r\n\r\n');
  if (endOfHead === -1) return undefined;
  const [statusLine = '', ...lines] = text.slice(0, endOfHead).split('\r\n');
  const headers = new Map(
    lines.map((line) => [line.split(':')[0]?.toLowerCase() ?? '', line.replace(/^[^:]*: */, '')]),
  );
  const rest = text.slice(endOfHead + 4);
  const length = Number(headers.get('content-length') ?? 0);
  const isChunked = headers.get('transfer-encoding') === 'chunked';
  const read = isChunked ? dechunked(rest) : rest.length < length ? undefined : { body: rest.slice(0, length), length };
  if (read === undefined) return undefined;
  const status = Number(statusLine.split(' ')[1]);
  return { answer: { status, headers, body: read.body }, length: endOfHead + 4 + read.length };
}

function dechunked(text: string): { readonly body: string; readonly length: number } | undefined {
  let body = '';
  for (let at = 0; ; ) {
    const endOfSize = text.indexOf('\r\n', at);
    if (endOfSize === -1) return undefined;
    const size = Number.parseInt(text.slice(at, endOfSize), 16);
    at = endOfSize + 2 + size + 2;
    if (text.length < at) return undefined;
    if (size === 0) return { body, length: at };
    body += text.slice(endOfSize + 2, at - 2);
  }
}
