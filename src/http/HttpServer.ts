import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerOptions, ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Pem } from '../network/pemFiles.js';
import type { Logger } from '../observability/log.js';
import { pause } from '../process/pause.js';
import {
  closeWithConnection,
  followHandshakes,
  reissueWithoutUpgrade,
  whenAnswered,
  whenNobodyConnects,
} from './connections.js';

/** Answers one request completely. A rejection is a bug: the client gets 500, or an answer that breaks off. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Takes over the connection of an upgrade request, or returns false. `head`: bytes already read after the request. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;

export interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: Pem | undefined;
  /** By exact path, for every method. */
  readonly routes: ReadonlyMap<string, Handler>;
  /** Called for a request that has no route, before it is answered. */
  readonly onNotFound?: Handler;
  /** Runs before every route; returns true when it has answered (preflights, refused origins). */
  readonly before: (request: IncomingMessage, response: ServerResponse) => boolean;
  readonly log: Pick<Logger, 'error'>;
  readonly timeouts?: Pick<ServerOptions, 'headersTimeout' | 'requestTimeout' | 'connectionsCheckingInterval'>;
}

/**
 * In milliseconds. A slower client gets 408 and is disconnected; `requestTimeout` covers the headers and the body. A TLS
 * handshake may take as long as the headers.
 */
const defaultTimeouts = { headersTimeout: 20_000, requestTimeout: 60_000, connectionsCheckingInterval: 5000 };

/** In milliseconds. Longer than load balancers keep idle connections, or they send requests on one that is being closed. */
const keepAliveTimeout = 620_000;

/** The phases of a drain: when each ends at the latest, in milliseconds from the start, or how long it takes at most. */
const drainPhases = (timeoutMs: number) => ({
  /** New connections are still accepted until then, so that load balancers see the readiness probe fail. */
  acceptUntilMs: Math.min(1000, timeoutMs / 4),
  /** How long it then waits for a pause in new connections; afterwards, one turn without any is enough. */
  quietForMs: Math.min(250, timeoutMs / 8),
  /** The listening socket is closed then at the latest, even if connections keep coming. */
  closeListenerByMs: (timeoutMs * 3) / 4,
  /** Idle connections stay open until then: a request may already be on its way. */
  keepIdleUntilMs: Math.min(3000, timeoutMs / 2),
});

const nodeMajor = Number.parseInt(process.versions.node, 10);

const plainText = ['content-type', 'text/plain; charset=utf-8'];

/** Most bytes of an unread body that Node.js may read and discard, to keep the connection for the next request. */
const maxDroppedBytes = 65_536;

/** Pages set their own Content-Security-Policy. All other answers may load nothing and may not be framed. */
function safeHeaders(page: readonly string[]) {
  const policy = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'";
  return { page, answer: [...page, 'content-security-policy', policy] };
}
const plainHeaders = ['x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer'];
const overTcp = safeHeaders(plainHeaders);
const overTls = safeHeaders([...plainHeaders, 'strict-transport-security', 'max-age=31536000; includeSubDomains']);

/** Adds the security headers when the head of an answer is written: `setHeader` would cost several times as much. */
class SafeResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Supports only what our code uses: no status message, and headers as one flat list of names and values. */
  override writeHead(status: number, headers?: unknown): this {
    const isPage = this.hasHeader('content-security-policy');
    const safe = ('encrypted' in this.req.socket ? overTls : overTcp)[isPage ? 'page' : 'answer'];
    const all = headers === undefined ? [...safe] : safe.concat(headers as string[]);
    if (leavesMuchUnread(this.req)) {
      all.push('connection', 'close');
      stopReading(this.req);
    }
    return super.writeHead(status, all);
  }
}

/** Whether a long body is unread. Before the next request Node.js would read it to its end, as it may with a short one. */
function leavesMuchUnread({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxDroppedBytes;
}

/** How long the connection stays open after an answer that came before the end of a body, in milliseconds. */
const lingerMs = 500;

/**
 * Reads no more of a body, and closes its connection a moment after the answer: closed with bytes unread it is reset, and a
 * client that still writes gets an error in place of the answer.
 */
function stopReading(request: IncomingMessage): void {
  request.read(); // Node.js discards the rest of a body of which nothing was read
  request.socket.destroySoon = function closeLater(this: Socket) {
    this.end(() => setTimeout(() => this.destroy(), lingerMs).unref());
  };
}

/** The listening socket: routing by path, and a drain that loses no request. */
export class HttpServer {
  readonly server: Server;
  readonly #inFlight = new Set<ServerResponse>();
  /** One `close` listener for all answers (`this` is the answer): cheaper than a closure for each. */
  readonly #onClose: (this: ServerResponse) => void;
  #draining = false;
  #cutHandshakes = () => {};
  /** Set while the listening socket is being closed; requests wait for it. */
  #closingListener: Promise<void> | undefined;

  constructor(private readonly options: HttpServerOptions) {
    const inFlight = this.#inFlight;
    this.#onClose = function onClose() {
      inFlight.delete(this);
    };
    const { tls, timeouts = defaultTimeouts } = options;
    const limits = {
      ...timeouts,
      ...{ keepAliveTimeout, maxHeaderSize: 16_384, ServerResponse: SafeResponse },
      // Node.js 25+ reads the body of an upgrade request separately, so `reissue` would lose it: grant no upgrade with a body.
      ...(nodeMajor >= 25 && {
        shouldUpgradeCallback: ({ headers }: IncomingMessage) =>
          this.server.listenerCount('upgrade') > 0 &&
          (headers['content-length'] ?? headers['transfer-encoding']) === undefined,
      }),
    };
    const listener = (request: IncomingMessage, response: ServerResponse) =>
      void this.#serve(request, response).catch((error) => this.#fail(response, error));
    if (tls === undefined) this.server = createServer(limits, listener);
    else {
      const handshakeTimeout = timeouts.headersTimeout;
      const server = createTlsServer(
        { ...limits, handshakeTimeout, ...contextOf(tls), requestCert: tls.ca !== undefined },
        listener,
      );
      this.#cutHandshakes = followHandshakes(server);
      this.server = server;
    }
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Listens; returns the port. @throws Error with the system's code, such as EADDRINUSE */
  async listen(): Promise<number> {
    await once(this.server.listen(this.options.port, this.options.host), 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  /** Offers upgrades to `take`. A request it declines, or one behind unanswered requests, is served without the upgrade. */
  onUpgrade(take: UpgradeHandler): void {
    this.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const earlier = [...this.#inFlight].filter(({ req }) => req.socket === socket);
      const reissue = () => reissueWithoutUpgrade(this.server, request, socket, head);
      const goOn = (canRead: boolean) => (canRead ? reissue() : request.socket.destroySoon());
      if (earlier.length > 0) void whenAnswered(earlier, request.socket).then(goOn);
      else if (!take(request, socket, head)) reissue();
    });
  }

  /** Uses another certificate for connections from now on. */
  renewTls(tls: Pem): void {
    if (this.server instanceof TlsServer) this.server.setSecureContext(contextOf(tls));
  }

  /** Answers requests in flight and those still arriving with `connection: close`; ends all within `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    if (this.#draining) return;
    this.#draining = true;
    const startedAt = performance.now();
    const leftOf = (ms: number) => Math.max(0, startedAt + ms - performance.now());
    const { acceptUntilMs, quietForMs, closeListenerByMs, keepIdleUntilMs } = drainPhases(timeoutMs);
    for (const response of this.#inFlight) if (!response.headersSent) response.setHeader('connection', 'close');
    if (timeoutMs > 0) await pause(acceptUntilMs);
    const closed = once(this.server, 'close');
    this.#closingListener = this.#closeListener(quietForMs, leftOf(closeListenerByMs));
    await this.#closingListener;
    this.#closingListener = undefined;
    await Promise.race([closed, pause(leftOf(keepIdleUntilMs))]);
    this.server.closeIdleConnections();
    while (this.#inFlight.size > 0 && leftOf(timeoutMs) > 0) {
      await Promise.race([closed, pause(20)]);
      this.server.closeIdleConnections();
    }
    this.server.closeAllConnections();
    this.#cutHandshakes();
    await closed;
  }

  /** Closes the listening socket without losing a connection. Requests wait meanwhile: once answered, clients reconnect. */
  async #closeListener(quietFor: number, atMost: number): Promise<void> {
    if (atMost > 0) await whenNobodyConnects(this.server, { quietFor, atMost });
    // Not `server.close()`, which ends idle connections at once: a request may be on its way on one of them.
    NetServer.prototype.close.call(this.server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#inFlight.add(response);
    response.on('close', this.#onClose);
    if (response.socket === null) closeWithConnection(response);
    if (this.#draining) response.setHeader('connection', 'close');
    if (this.#closingListener !== undefined) await this.#closingListener;
    if (response.closed) return; // the client has gone
    if (this.options.before(request, response)) return;
    const url = pathAndQueryOf(request.url ?? '/');
    request.url = url;
    const end = url.indexOf('?');
    const handler = this.options.routes.get(end === -1 ? url : url.slice(0, end));
    if (handler !== undefined) return handler(request, response);
    this.options.onNotFound?.(request, response);
    response.writeHead(404, plainText).end('Not found\n');
  }

  /** Without this, the unhandled rejection of one request would end the process. */
  #fail(response: ServerResponse, error: unknown): void {
    this.options.log.error({ err: error }, 'a bug of the gateway');
    if (response.writableEnded) return; // it is complete
    if (response.headersSent) response.destroy();
    else response.writeHead(500, plainText).end('Internal server error\n');
  }
}

function contextOf(tls: Pem) {
  return { ...tls, minVersion: 'TLSv1.2' } as const;
}

/** The path and query of a request target. A proxy may send an absolute address (RFC 9112, 3.2.2); its host is ignored. */
export function pathAndQueryOf(target: string): string {
  if (target.startsWith('/')) return target;
  const rest = target.replace(/^https?:\/\/[^/?#]*/i, '');
  return rest.startsWith('/') || rest === target ? rest : `/${rest}`;
}
