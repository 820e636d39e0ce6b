import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Handler, HttpServer, UpgradeHandler } from '../http/HttpServer.js';
import { readAccept } from '../http/mediaTypes.js';
import { pathAndQueryOf } from '../http/requestTarget.js';
import { CallbackEndpoint, type CallbackEndpointOptions, wantsCallback } from './CallbackEndpoint.js';
import { EventStreamEndpoint, wantsEvents } from './EventStreamEndpoint.js';
import { MultipartEndpoint, wantsMultipart } from './MultipartEndpoint.js';
import { reissueWithoutUpgrade } from './reissueWithoutUpgrade.js';
import { WebSocketEndpoint } from './WebSocketEndpoint.js';

export interface LiveEdgeOptions extends Omit<CallbackEndpointOptions, 'keepAliveMs'> {
  /** Most operations at once on one socket. */
  readonly maxOperations: number;
  /** Between two signs of life on an open stream, in milliseconds; by default 12 s, which proxies take for busy. */
  readonly keepAliveMs?: number;
  /** How long a socket may take to say who it is, in milliseconds; by default 3 s. */
  readonly initTimeoutMs?: number;
}

/** Everything that stays open: WebSocket, event streams, multipart responses and callbacks. */
export class LiveEdge {
  readonly #sockets: WebSocketEndpoint;
  readonly #events: EventStreamEndpoint;
  readonly #multipart: MultipartEndpoint;
  readonly #callbacks: CallbackEndpoint;

  constructor({ keepAliveMs = 12_000, initTimeoutMs = 3000, ...rest }: LiveEdgeOptions) {
    const options = { ...rest, keepAliveMs };
    this.#sockets = new WebSocketEndpoint({
      ...options,
      maxMessageBytes: options.requestLimits.maxBytes,
      initTimeoutMs,
    });
    this.#events = new EventStreamEndpoint(options);
    this.#multipart = new MultipartEndpoint(options);
    this.#callbacks = new CallbackEndpoint(options);
  }

  /** Takes the WebSockets of `http` on `/graphql`; every other upgrade is declined, and the request answered as it is. */
  attach(http: HttpServer): void {
    const decline: UpgradeHandler = (...upgrade) => reissueWithoutUpgrade(http.server, ...upgrade);
    http.onUpgrade((request, socket, head) => {
      const isSocket = request.headers.upgrade?.toLowerCase() === 'websocket';
      const isOurs = /^\/graphql(\?|$)/.test(pathAndQueryOf(request.url ?? ''));
      if (isSocket && isOurs) this.#sockets.upgrade(request, socket, head);
      else decline(request, socket, head);
    }, decline);
  }

  /** `/graphql`: subscriptions in the form the caller accepts, everything else by `otherwise`. */
  graphql(otherwise: Handler): Handler {
    return (request, response) => {
      const accepted = readAccept(request.headers.accept);
      const isPost = request.method === 'POST';
      if (isPost && wantsCallback(accepted)) return this.#callbacks.handle(request, response);
      if (isPost && wantsMultipart(accepted)) return this.#multipart.handle(request, response);
      if (wantsEvents(accepted)) return this.#events.handleOne(request, response);
      return otherwise(request, response);
    };
  }

  /** `/graphql/stream` */
  stream(request: IncomingMessage, response: ServerResponse): Promise<void> {
    return this.#events.handle(request, response);
  }
}
