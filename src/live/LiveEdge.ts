import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Handler, pathAndQueryOf } from '../http/HttpServer.js';
import { CallbackEndpoint, type CallbackEndpointOptions } from './CallbackEndpoint.js';
import { eventStreamFormat, multipartFormat } from './HttpStream.js';
import { acceptsEvents, StreamEndpoint } from './StreamEndpoint.js';
import { WebSocketEndpoint } from './WebSocketEndpoint.js';

export interface LiveEdgeOptions extends Omit<CallbackEndpointOptions, 'keepAliveMs'> {
  /** Most operations at once on one socket. */
  readonly maxOperations: number;
}

/** Between two signs of life on an open stream, in milliseconds: proxies take it for busy. */
const keepAliveMs = 12_000;
/** How long a socket may take to say who it is, in milliseconds. */
const initTimeoutMs = 3000;

/** Everything that stays open: WebSocket, event streams, multipart responses and callbacks. */
export class LiveEdge {
  /** `/graphql`, for requests that want their answer in one of these forms. */
  readonly events: Handler;
  readonly multipart: Handler;
  readonly callback: Handler;
  /** `/graphql/stream`, which answers with events alone. */
  readonly stream: Handler;
  readonly #sockets: WebSocketEndpoint;

  constructor(given: LiveEdgeOptions) {
    const options = { ...given, keepAliveMs, initTimeoutMs };
    const handlerOf = (endpoint: StreamEndpoint | CallbackEndpoint): Handler => endpoint.handle.bind(endpoint);
    this.events = handlerOf(new StreamEndpoint(eventStreamFormat, options));
    this.stream = handlerOf(new StreamEndpoint(eventStreamFormat, options, acceptsEvents));
    this.multipart = handlerOf(new StreamEndpoint(multipartFormat, options));
    this.callback = handlerOf(new CallbackEndpoint(options));
    this.#sockets = new WebSocketEndpoint(options);
  }

  /** Takes over the WebSockets of `/graphql`; false for every other upgrade. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const isSocket = request.headers.upgrade?.toLowerCase() === 'websocket';
    if (!isSocket || !/^\/graphql(\?|$)/.test(pathAndQueryOf(request.url ?? ''))) return false;
    this.#sockets.upgrade(request, socket, head);
    return true;
  }
}
