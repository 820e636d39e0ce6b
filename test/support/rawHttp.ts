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
