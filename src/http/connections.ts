import type { IncomingMessage, Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { pause } from '../process/pause.js';

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

const quietMs = 30;

/**
 * Closes the listening socket once no connection is waiting to be accepted: closing resets those that the system has
 * established and Node.js has not accepted. Until `quietForMs` it waits for {@link quietMs} without a new connection,
 * afterwards only for a turn of the event loop without one: each accepts at most one connection. Gives up after `atMostMs`.
 */
export async function closeListener(
  server: NetServer,
  { quietForMs, atMostMs }: { readonly quietForMs: number; readonly atMostMs: number },
): Promise<void> {
  let accepted = 0;
  const count = () => {
    accepted += 1;
  };
  server.on('connection', count);
  const startedAt = performance.now();
  const elapsedMs = () => performance.now() - startedAt;
  for (let before = -1; before !== accepted && elapsedMs() < atMostMs; ) {
    before = accepted;
    if (elapsedMs() < quietForMs) await pause(quietMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
  server.off('connection', count);
  // Not `server.close()`, which ends idle connections at once: a request may be on its way on one of them.
  NetServer.prototype.close.call(server);
}
