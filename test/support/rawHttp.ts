import { connect, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { atEnd } from './atEnd.js';

interface RawRequest {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The JSON body of a POST; without it, the request is a GET. */
  readonly body?: object;
  /** The loopback address to connect from. */
  readonly from?: string;
}

/**
 * Sends a request over a connection of its own, which stays open until a side destroys it. The socket is paused: a test
 * resumes it to read the answer. Over TLS, any certificate is accepted.
 */
export function rawRequest(origin: string, { path, headers = {}, body, from }: RawRequest): Socket {
  const { protocol, hostname, port } = new URL(origin);
  const text = body === undefined ? '' : JSON.stringify(body);
  const all = {
    host: 'gateway',
    ...headers,
    ...(body !== undefined && {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
    }),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const address = { host: hostname, port: Number(port), ...(from !== undefined && { localAddress: from }) };
  const socket =
    protocol === 'https:'
      ? connectSecurely({ ...address, rejectUnauthorized: false }).pause()
      : connect({ ...address, allowHalfOpen: true }).pause();
  socket.on('error', () => {}); // most tests wait for the connection to be cut
  atEnd(() => socket.destroy());
  socket.write(`${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`);
  return socket;
}

/** Sends a WebSocket handshake by hand; resolves with the connection and the status of the answer. */
export async function rawUpgrade(
  origin: string,
  from?: string,
): Promise<{ readonly socket: Socket; readonly status: number }> {
  const socket = rawRequest(origin, {
    path: '/graphql',
    ...(from !== undefined && { from }),
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      'sec-websocket-protocol': 'graphql-transport-ws',
    },
  });
  const head = await new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))).resume());
  return { socket, status: Number(head.split(' ')[1]) };
}

/** A client's frame, masked with zeros. Its header claims `length` bytes, which may be more than `payload` has. */
export function clientFrame(opcode: number, payload: Buffer, length = payload.length): Buffer {
  const head = Buffer.alloc(14);
  head[0] = 0x80 | opcode;
  head[1] = 0x80 | 127;
  head.writeBigUInt64BE(BigInt(length), 2);
  if (length > 125) return Buffer.concat([head, payload]);
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | length, 0, 0, 0, 0]), payload]);
}

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
  /** Ends the present wait for more of the answer. */
  let wake = () => {};
  socket.on('error', () => {}); // tests look at the close instead
  atEnd(() => socket.destroy());
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
    wake();
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve())).then(() => {
    isOver = true;
    wake();
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
          wake = resolve;
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
  const read = isChunked ? dechunked(rest) : { body: rest.slice(0, length), length };
  if (read === undefined || rest.length < read.length) return undefined;
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
