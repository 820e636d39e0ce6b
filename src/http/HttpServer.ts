import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Pem } from '../network/pemFiles.js';
import type { Logger } from '../observability/log.js';
import { endOfTurn, pause } from '../process/pause.js';
import { listenProblem } from '../process/systemErrors.js';
import {
  BoundedRequest,
  countUnanswered,
  isForWebSocket,
  leavesMuchUnread,
  maxHeaders,
  pathAndQueryOf,
  stopReading,
  unansweredOf,
} from './BoundedRequest.js';

/** Answers one request completely. A rejection is a bug: the client gets 500, or an answer that breaks off. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Takes a WebSocket. `head`: what the client sent after its request; `response`: on no socket yet, for a refusal. */
export type UpgradeHandler = (request: IncomingMessage, head: Buffer, response: ServerResponse) => Promise<void>;

/** By exact path, for every method. */
export type Routes = Readonly<Record<string, Handler>>;

interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls?: Pem | undefined;
  readonly routes: Routes;
  /** Runs before every route; gives true when nothing is left to answer: after a preflight or a refusal. */
  readonly before?: (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>;
  readonly upgrade?: UpgradeHandler;
  readonly log: Pick<Logger, 'error'>;
  readonly timeouts?: typeof defaultTimeouts;
}

/**
 * In milliseconds. A slower client gets 408 and is disconnected; `requestTimeout` covers the headers and the body. A TLS
 * handshake may take as long as the headers.
 */
const defaultTimeouts = { headersTimeout: 20_000, requestTimeout: 60_000, connectionsCheckingInterval: 5000 };

/** In milliseconds. Longer than load balancers keep idle connections: they must not send a request on one that we close. */
const keepAliveTimeout = 620_000;

/** The listening socket is closed once no connection has arrived for this long, in milliseconds. */
const quietMs = 30;

/** A turn of the event loop up to this length, in milliseconds, is too short for a connection to come unnoticed. */
const shortMs = 0.3;

/** Longest write over TLS, in bytes: a little less than one TLS record can hold. */
const pieceBytes = 16_000;

const plainText = ['content-type', 'text/plain; charset=utf-8', 'cache-control', 'no-store'];

const policyName = 'content-security-policy';
/** For every answer but the pages, which have a policy of their own: it may load nothing and may not be framed. */
const closedPolicy = [policyName, "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"];
/** Added to every answer. */
const overHttp = ['x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer'];
const overHttps = [...overHttp, 'strict-transport-security', 'max-age=31536000; includeSubDomains'];

/** The listening socket: routing by path, and a drain that loses no request. */
export class HttpServer {
  readonly server: Server;
  /** All connections, also those that never begin TLS or a request. */
  readonly #sockets = new Set<Socket>();
  #accepted = 0;
  #draining = false;
  /** Set while the listening socket is being closed; requests wait for it. */
  #closingListener: Promise<void> | undefined;

  constructor(private readonly options: HttpServerOptions) {
    const { tls, timeouts = defaultTimeouts } = options;
    const SafeResponse = this.#responseClass(tls === undefined ? overHttp : overHttps);
    const limits = { ...timeouts, keepAliveTimeout, IncomingMessage: BoundedRequest, ServerResponse: SafeResponse };
    const listener = (request: IncomingMessage, response: ServerResponse) =>
      void this.#serve(request, response).catch((error) => this.#fail(response, error));
    this.server =
      tls === undefined
        ? createServer(limits, listener)
        : createTlsServer(
            { ...limits, handshakeTimeout: timeouts.headersTimeout, ...tls, requestCert: tls.ca !== undefined },
            listener,
          );
    this.server.maxHeadersCount = maxHeaders;
    this.server.on('checkExpectation', listener); // Node.js would answer 417 itself, without counting the request
    this.server.on('upgrade', (request, socket, head) => {
      // Node.js notes here the answer that is being written, its own ones to bad requests included. A WebSocket, or its refusal,
      // must not be written into that.
      const isFree = !(socket as { readonly _httpMessage?: unknown })._httpMessage;
      if (!options.upgrade || !isFree || !isForWebSocket(request)) return socket.destroy();
      const response = new SafeResponse(request);
      options.upgrade(request, head, response).catch((error) => {
        this.#fail(response, error);
        socket.destroy();
      });
    });
    const remember = (socket: Socket) => {
      this.#sockets.add(socket);
      socket.setMaxListeners(0); // each answer that waits listens for its end
      socket.once('close', () => this.#sockets.delete(socket));
    };
    this.server.on('connection', (socket: Socket) => {
      this.#accepted += 1;
      remember(socket);
    });
    this.server.on('secureConnection', (socket: Socket) => {
      remember(socket); // beside its TCP socket: only this one's `bytesRead` leaves out the handshake
      writeInPieces(socket);
    });
  }

  /** `setting`: the one that names the port. @throws Error in one plain line */
  async listen(setting: string): Promise<void> {
    try {
      await once(this.server.listen(this.options.port, this.options.host), 'listening');
    } catch (error) {
      const problem = listenProblem(error, setting);
      throw problem ? new Error(problem) : error;
    }
  }

  /** The port on which the server listens. */
  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /**
   * Answers requests in flight and those still arriving, almost all with `connection: close`; ends all connections within
   * `timeoutMs`.
   */
  async stop(timeoutMs = 0): Promise<void> {
    this.#draining = true;
    const startedAt = performance.now();
    // New connections are still accepted, so that load balancers see the readiness probe fail.
    if (timeoutMs > 0) await pause(Math.min(1000, timeoutMs / 4));
    const now = performance.now();
    // Requests wait until the listening socket is closed: clients that are answered before would connect again.
    this.#closingListener = this.#closeListener(now + Math.min(250, timeoutMs / 8), now + timeoutMs / 2);
    await this.#closingListener;
    this.#closingListener = undefined;
    while (this.#sockets.size > 0) {
      await pause(20);
      const elapsedMs = performance.now() - startedAt;
      // Idle connections stay open for a while, because a request may already be on its way.
      if (elapsedMs < Math.min(3000, timeoutMs / 2)) continue;
      // Node.js counts a connection as idle although a client still reads its answer.
      if ([...this.#sockets].every(({ writableLength }) => writableLength === 0)) this.server.closeIdleConnections();
      const isOver = elapsedMs >= timeoutMs;
      // Node.js does not count a connection as idle on which nothing was ever sent, such as one that a browser opened early.
      for (const socket of this.#sockets) if (isOver || socket.bytesRead === 0) socket.destroy();
    }
  }

  /**
   * Closes the listening socket once no connection is waiting to be accepted, and at `closesAt` in any case: closing it resets
   * the connections that the system has established and Node.js has not accepted. Until `quietUntil`, none is waiting if none
   * has come for {@link quietMs}. After that, one short turn of the event loop is enough, because each turn accepts a connection
   * if one is waiting at its beginning. TLS handshakes make turns long.
   */
  async #closeListener(quietUntil: number, closesAt: number): Promise<void> {
    let before = -1;
    while (before !== this.#accepted && performance.now() < closesAt) {
      before = this.#accepted;
      if (performance.now() < quietUntil) await pause(quietMs);
      const turnAt = performance.now();
      await endOfTurn();
      if (performance.now() - turnAt > shortMs) before = -1;
    }
    // Not `server.close()`, which ends idle connections at once: a request may be on its way on one of them.
    NetServer.prototype.close.call(this.server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    countUnanswered(request, response);
    if (this.#closingListener !== undefined) await this.#closingListener;
    const url = pathAndQueryOf(request.url ?? '/');
    request.url = url;
    const answered = this.options.before?.(request, response);
    // Only a promise is awaited: a request that needs no waiting should not wait.
    if (answered instanceof Promise ? await answered : answered) return;
    const [path = ''] = url.split('?', 1);
    const { routes } = this.options;
    const handler = Object.hasOwn(routes, path) && routes[path]; // a CONNECT may ask for `constructor`
    if (handler) await handler(request, response);
    else response.writeHead(404, plainText).end(`Not found: the paths here are ${Object.keys(routes).join(', ')}\n`);
  }

  /** The class of responses, which adds the `safe` headers to each: `setHeader` would cost several times as much. */
  #responseClass(safe: readonly string[]): typeof ServerResponse {
    // A client that is told to close its connection connects again. While the listening socket is being closed, that new
    // connection might be reset. What was asked on the connection after this request would get no answer.
    const isLast = ({ socket }: IncomingMessage) =>
      this.#draining && this.#closingListener === undefined && unansweredOf(socket) < 2;
    return class<Request extends IncomingMessage> extends ServerResponse<Request> {
      /**
       * Supports only what our code uses: no status message, and headers as one flat list of names and values. A header in the
       * list replaces one of that name that was set before, such as the `Vary` of CORS.
       */
      override writeHead(status: number, headers: unknown = []): this {
        const all = safe.concat(headers as string[]);
        if (!all.includes(policyName)) all.push(...closedPolicy);
        const isCutOff = leavesMuchUnread(this.req);
        if (isCutOff) stopReading(this.req);
        if (isCutOff || isLast(this.req)) all.push('connection', 'close');
        return super.writeHead(status, all);
      }
    };
  }

  /** Logs a bug, and answers 500 or breaks off the answer. Unhandled, the rejection would end the process. */
  #fail(response: ServerResponse, error: unknown): void {
    this.options.log.error({ err: error }, 'a bug of the gateway');
    if (response.writableEnded) return; // it is complete
    if (response.headersSent) response.destroy();
    else response.writeHead(500, plainText).end('Internal server error\n');
  }
}

/** Writes a long text in pieces: until a connection ends, OpenSSL keeps a buffer as large as the longest write. */
function writeInPieces(socket: Socket): void {
  const write = socket._write.bind(socket);
  socket._writev = (all, taken) => {
    const parts = all.map(({ chunk, encoding }) => (typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk));
    // A chunk has four parts, and a WebSocket message two. They are written together, because each part alone would become a
    // TLS record and a packet, unless one is long: a copy of it would be kept beside it until it is taken.
    const left = parts.some(({ length }) => length > pieceBytes) ? parts : [Buffer.concat(parts)];
    const goOn = (error?: Error | null) => {
      const part = left.shift();
      if (error || part === undefined) return taken(error);
      if (part.length > pieceBytes) left.unshift(part.subarray(pieceBytes));
      write(part.subarray(0, pieceBytes), 'buffer' as BufferEncoding, goOn); // the encoding that streams pass with bytes
    };
    goOn();
  };
  socket._write = (chunk, encoding, taken) => socket._writev?.([{ chunk, encoding }], taken);
}
