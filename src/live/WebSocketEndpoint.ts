import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { handleProtocols } from 'graphql-ws';
import { type ServerOptions, WebSocketServer } from 'ws';
import type { GatewayError } from '../errors/errors.js';
import { isOriginAllowed, shuttingDown } from './admitStream.js';
import { newcomerOf, SocketConnection, type SocketConnectionOptions } from './SocketConnection.js';

/** How long a peer may take to answer our close, or to end the connection after its own, in milliseconds. */
const closeGraceMs = 1000;

/** `/graphql` over WebSocket, in the protocol `graphql-transport-ws`. */
export class WebSocketEndpoint {
  readonly #options: SocketConnectionOptions;
  readonly #sockets: WebSocketServer;

  constructor(options: SocketConnectionOptions) {
    this.#options = options;
    const settings: ServerOptions & { readonly closeTimeout: number } = {
      noServer: true,
      maxPayload: options.requestLimits.maxBytes,
      handleProtocols,
      clientTracking: false,
      perMessageDeflate: false, // a small message may unpack to a huge one, and ours are short
      autoPong: false, // pongs are counted like all that a peer may leave unread
      closeTimeout: closeGraceMs,
    };
    this.#sockets = new WebSocketServer(settings);
  }

  /** Answers a request to upgrade: with a socket, or with the reason why not. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { streams, ledger, allowedOrigins } = this.#options;
    if (!isOriginAllowed(request.headers, allowedOrigins)) {
      refuse(socket, { status: 403, reason: 'Origin not allowed (CORS_ORIGINS)' });
      return;
    }
    if (streams.draining) {
      refuse(socket, { status: 503, reason: shuttingDown().message });
      return;
    }
    const newcomer = newcomerOf(request);
    const refusal = ledger.refusalOf('streams', undefined) ?? ledger.refusalOf('newcomers', newcomer);
    if (refusal !== undefined) {
      refuse(socket, { status: refusal.httpStatus ?? 503, reason: refusal.message, retryAfter: refusal });
      return;
    }
    const leavePlace = ledger.take('newcomers', newcomer);
    socket.once('close', leavePlace);
    this.#sockets.handleUpgrade(request, socket, head, (opened) => {
      new SocketConnection({ socket: opened, transport: socket as Socket, request, leavePlace }, this.#options);
    });
  }
}

interface RefusedUpgrade {
  readonly status: number;
  readonly reason: string;
  readonly retryAfter?: GatewayError;
}

function refuse(socket: Duplex, { status, reason, retryAfter }: RefusedUpgrade): void {
  socket.on('error', () => {});
  socket.once('finish', () => socket.destroy()); // nothing else ends it when the peer does not
  const wait = retryAfter?.retryAfterSeconds === undefined ? '' : `Retry-After: ${retryAfter.retryAfterSeconds}\r\n`;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${wait}Connection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(reason) + 1}\r\n\r\n${reason}\n`,
  );
}
