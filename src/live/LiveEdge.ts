import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { handleProtocols } from 'graphql-ws';
import { type ServerOptions, WebSocketServer } from 'ws';
import { credentialsOf } from '../auth/identify.js';
import type { GatewayError } from '../errors/errors.js';
import { refuseInTurn, requestIdOf } from '../http/answering.js';
import type { StreamHandler } from '../http/GraphQLEndpoint.js';
import { type Handler, pathAndQueryOf } from '../http/HttpServer.js';
import { addressOf } from '../network/peer.js';
import { clientOf } from '../operations/clientName.js';
import type { LiveOptions } from './LiveOptions.js';
import { refusalOfStream } from './refusalOfStream.js';
import { SocketConnection } from './SocketConnection.js';
import {
  eventStreamFormat,
  multipartFormat,
  refuseUnlessEvents,
  type StreamFormat,
  streamEndpoint,
  type Visit,
} from './streamEndpoint.js';

/** Milliseconds that a peer may take to answer our close frame, or to end the connection after sending its own. */
const closeGraceMs = 1000;

/** The entry point of the live transports: WebSocket, event streams and multipart responses. */
export class LiveEdge {
  /** Handlers for requests to `/graphql` that want their answer in one of these forms. */
  readonly events: StreamHandler;
  readonly multipart: StreamHandler;
  /** `/graphql/stream`, which answers with events alone. */
  readonly stream: Handler;
  readonly #sockets: WebSocketServer;

  constructor(private readonly options: LiveOptions) {
    this.events = this.#handler(eventStreamFormat);
    this.stream = this.#handler(eventStreamFormat, refuseUnlessEvents);
    this.multipart = this.#handler(multipartFormat);
    const settings: ServerOptions & { readonly closeTimeout: number } = {
      noServer: true,
      maxPayload: options.operations.limits.bodyBytes,
      handleProtocols,
      clientTracking: false,
      perMessageDeflate: false, // a small message may unpack to a huge one, and ours are short
      autoPong: false, // SocketConnection sends pongs, to count the bytes that the peer leaves unread
      closeTimeout: closeGraceMs,
    };
    this.#sockets = new WebSocketServer(settings);
  }

  /** `check` throws when a request may not have this form. */
  #handler(format: StreamFormat, check?: (request: IncomingMessage) => void): StreamHandler {
    const answer = streamEndpoint(format, this.options);
    return async (request, response, begun) => {
      const {
        requestId = requestIdOf(request),
        startedAt = performance.now(),
        ...found // the identity and the operation, if already known
      } = begun ?? {};
      const known = { requestId, startedAt, client: clientOf(request.headers), peer: request.peer };
      const visit: Visit = { known, ...found };
      try {
        check?.(request);
        await answer(request, response, visit);
      } catch (error) {
        const { remoteAddress } = credentialsOf(request);
        const facts = { remoteAddress, ...visit.identity, ...known };
        const refusal = this.options.operations.refuse(error, facts, format.transport);
        await refuseInTurn(response, this.options.operations, refusal, facts);
      }
    };
  }

  /** Accepts or refuses WebSocket upgrades of `/graphql`; returns false for every other upgrade. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const isSocket = request.headers.upgrade?.toLowerCase() === 'websocket';
    if (!isSocket || !/^\/graphql(\?|$)/.test(pathAndQueryOf(request.url ?? ''))) return false;
    const { places } = this.options;
    const address = addressOf(request);
    const refusal =
      refusalOfStream(request, this.options) ??
      places.refusalOf('streams', undefined) ??
      places.refusalOf('newcomers', address);
    if (refusal === undefined) {
      const leavePlace = places.take('newcomers', address);
      socket.once('close', leavePlace);
      this.#sockets.handleUpgrade(request, socket, head, (opened) => {
        new SocketConnection(opened, request, leavePlace, this.options);
      });
    } else {
      const facts = {
        requestId: requestIdOf(request),
        startedAt: performance.now(),
        client: clientOf(request.headers),
        peer: request.peer,
      };
      const { operations, tracing } = this.options;
      const turnAway = async () => operations.turnAway(refusal.code, refusal.message, facts, 'ws');
      const trace = tracing?.socket(request, '/graphql', refusal.httpStatus);
      void (trace?.run(turnAway) ?? turnAway()).then(() => trace?.end());
      refuseUpgrade(socket, refusal, facts.requestId);
    }
    return true;
  }
}

function refuseUpgrade(socket: Duplex, refusal: GatewayError, requestId: string): void {
  const { httpStatus = 503, message, retryAfterSeconds } = refusal;
  socket.on('error', () => {});
  socket.once('finish', () => socket.destroy()); // otherwise the socket stays open until the peer closes it
  const wait = retryAfterSeconds === undefined ? '' : `Retry-After: ${retryAfterSeconds}\r\n`;
  socket.end(
    `HTTP/1.1 ${httpStatus} ${STATUS_CODES[httpStatus]}\r\n${wait}X-Request-Id: ${requestId}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(message) + 1}\r\n\r\n${message}\n`,
  );
}
