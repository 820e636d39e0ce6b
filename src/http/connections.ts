import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';

/**
 * Has a response that waits behind an earlier one close with its connection. Node.js tells only the first of them, and who
 * counts on the event would hold a place for good.
 */
export function closeWithConnection(response: ServerResponse): void {
  const { socket } = response.req;
  const close = () => {
    if (response.socket !== null || response.closed) return; // its turn came: Node.js tells it
    response.destroy();
    response.emit('close');
  };
  socket.setMaxListeners(0); // one for each request that is sent ahead
  socket.once('close', close);
  response.once('close', () => socket.off('close', close));
}

/**
 * Resolves when `earlier`, the responses under way on a connection that Node.js has let go of for an upgrade, are written.
 * Resolves with whether what follows on the connection can be read: not when it is closed, nor when Node.js had stopped
 * reading it and would now drop what arrives.
 */
export async function whenAnswered(earlier: readonly ServerResponse[], socket: Socket): Promise<boolean> {
  const wasPaused = socket.isPaused();
  const passOnDrain = () => {
    for (const response of earlier) if (response.socket === socket) response.emit('drain');
  };
  const ignore = () => {}; // a close follows
  socket.on('drain', passOnDrain).on('error', ignore);
  await Promise.all(earlier.map((response) => new Promise<void>((resolve) => response.once('close', resolve))));
  socket.off('drain', passOnDrain).off('error', ignore);
  socket.setTimeout(0); // that of an idle connection, which this one is not
  return !wasPaused && !socket.destroyed && !socket.writableEnded;
}

const upgradeHeaders = new Set(['upgrade', 'connection', 'http2-settings']);

/**
 * Has the server answer a request as if it had not offered an upgrade, as HTTP lets it (RFC 9110, section 7.8). Once
 * somebody listens for upgrades, Node.js gives them every request that offers one, such as Java's `Upgrade: h2c`.
 */
export function reissueWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (!upgradeHeaders.has(name.toLowerCase())) lines.push(`${name}: ${rawHeaders[i + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit(socket instanceof TLSSocket ? 'secureConnection' : 'connection', socket);
}

const quietMs = 30;

/**
 * Resolves just after the system had no connection to accept, for which it waits `maxMs` at most: the moment to close a
 * listening socket, because the system resets the connections it has made and nobody has accepted.
 */
export async function whenNobodyConnects(server: NetServer, maxMs: number): Promise<void> {
  let accepted = 0;
  const count = () => {
    accepted += 1;
  };
  server.on('connection', count);
  const endsAt = performance.now() + maxMs;
  for (let before = -1; before !== accepted; ) {
    before = accepted;
    if (performance.now() < endsAt) await delay(quietMs);
    await nextTurn(); // Node.js accepts at most one connection in each turn of its event loop
  }
  server.off('connection', count);
}
