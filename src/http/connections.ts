import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { pause } from '../process/pause.js';

/** Closes a pipelined response with its connection: Node.js emits `close` only for the first response in line. */
export function closeWithConnection(response: ServerResponse): void {
  const { socket } = response.req;
  const close = () => {
    if (response.socket !== null || response.closed) return; // its turn has come: Node.js emits `close` itself
    response.destroy();
    response.emit('close');
  };
  socket.setMaxListeners(0); // one listener for each pipelined request
  socket.once('close', close);
  response.once('close', () => socket.off('close', close));
}

/**
 * Waits until the `earlier` responses are written, on a connection that Node.js has detached for an upgrade. Resolves with
 * whether the connection can be read further: not when it is closed, or when Node.js had paused it and would drop data.
 */
export async function whenAnswered(earlier: readonly ServerResponse[], socket: Socket): Promise<boolean> {
  const wasPaused = socket.isPaused();
  const passOnDrain = () => {
    for (const response of earlier) if (response.socket === socket) response.emit('drain');
  };
  const ignore = () => {}; // `close` follows an error
  socket.on('drain', passOnDrain).on('error', ignore);
  await Promise.all(earlier.map((response) => new Promise<void>((resolve) => response.once('close', resolve))));
  socket.off('drain', passOnDrain).off('error', ignore);
  socket.setTimeout(0); // removes the keep-alive timeout: this connection is not idle
  return !wasPaused && !socket.destroyed && !socket.writableEnded;
}

const upgradeHeaders = new Set(['upgrade', 'http2-settings']);

/** The options in a Connection header that do not belong to the upgrade, such as `close`. */
const withoutUpgrade = (options: string) =>
  options.split(',').filter((option) => !upgradeHeaders.has(option.trim().toLowerCase()));

/**
 * Serves a request as if it had not offered an upgrade (RFC 9110, 7.8). Once there is an `upgrade` listener, Node.js hands
 * it every request that offers any upgrade, such as Java's `Upgrade: h2c`.
 */
export function reissueWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i] ?? '', rawHeaders[i + 1] ?? ''];
    if (upgradeHeaders.has(name.toLowerCase())) continue;
    const kept = name.toLowerCase() === 'connection' ? withoutUpgrade(value).join() : value;
    if (kept !== '') lines.push(`${name}: ${kept}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit(socket instanceof TLSSocket ? 'secureConnection' : 'connection', socket);
}

/** Follows the TLS handshakes of a server. Returns what cuts those under way, which `closeAllConnections` leaves open. */
export function followHandshakes(server: TlsServer): () => void {
  const unfinished = new Map<string, Socket>();
  const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket);
    unfinished.set(peer, socket);
    socket.once('close', () => unfinished.delete(peer));
  });
  server.on('secureConnection', (socket) => unfinished.delete(peerOf(socket)));
  return () => {
    for (const socket of unfinished.values()) socket.destroy();
  };
}

const quietMs = 30;

/**
 * Waits until no connection is waiting to be accepted: closing the listening socket resets those that the system has
 * established and Node.js has not accepted. Until `quietFor` it waits for {@link quietMs} without a new connection,
 * afterwards only for a turn of the event loop without one: each accepts at most one connection. Gives up after `atMost`.
 * Both are in milliseconds from the call.
 */
export async function whenNobodyConnects(
  server: NetServer,
  { quietFor, atMost }: { readonly quietFor: number; readonly atMost: number },
): Promise<void> {
  let accepted = 0;
  const count = () => {
    accepted += 1;
  };
  server.on('connection', count);
  const nobodyConnects = async (pauseMs: number): Promise<boolean> => {
    const before = accepted;
    if (pauseMs > 0) await pause(pauseMs);
    await new Promise((resolve) => setImmediate(resolve));
    return accepted === before;
  };
  const startedAt = performance.now();
  const isWithin = (ms: number) => performance.now() < startedAt + ms;
  let isQuiet = false;
  while (!isQuiet && isWithin(Math.min(quietFor, atMost))) isQuiet = await nobodyConnects(quietMs);
  while (!isQuiet && isWithin(atMost)) isQuiet = await nobodyConnects(0);
  server.off('connection', count);
}
