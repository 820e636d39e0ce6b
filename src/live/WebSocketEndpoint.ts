import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { handleProtocols } from 'graphql-ws';
import { type ServerOptions, WebSocketServer } from 'ws';
import type { Release } from '../admission/Ledger.js';
import type { GatewayError } from '../errors/errors.js';
import { refusalOfStream } from './admitStream.js';
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
      maxPayload: options.pipeline.limits.bodyBytes,
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
    const { ledger } = this.#options;
    const newcomer = newcomerOf(request);
    const refusal =
      refusalOfStream(request, this.#options) ??
      ledger.refusalOf('streams', undefined) ??
      ledger.refusalOf('newcomers', newcomer);
    if (refusal === undefined) this.#open(request, socket, head, ledger.take('newcomers', newcomer));
    else refuse(socket, refusal);
  }

  #open(request: IncomingMessage, socket: Duplex, head: Buffer, leavePlace: Release): void {
    socket.once('close', leavePlace);
    this.#sockets.handleUpgrade(request, socket, head, (opened) => {
      new SocketConnection({ socket: opened, transport: socket as Socket, request, leavePlace }, this.#options);
    });
  }
}

function refuse(socket: Duplex, { httpStatus: status = 503, message: reason, retryAfterSeconds }: GatewayError): void {
  socket.on('error', () => {});
  socket.once('finish', () => socket.destroy()); // nothing else ends it when the peer does not
  const wait = retryAfterSeconds === undefined ? '' : `Retry-After: ${retryAfterSeconds}\r\n`;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${wait}Connection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(reason) + 1}\r\n\r\n${reason}\n`,
  );
}
