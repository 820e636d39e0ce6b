import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { type AddressInfo, Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { closeWithConnection, reissueWithoutUpgrade, whenAnswered, whenNobodyConnects } from './connections.js';
import type { TlsMaterial } from './tlsFiles.js';

/** Answers one request completely; must not reject. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Takes over the connection of a request that offers another protocol, or returns false; `head` is what was read beyond it. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;

export interface HttpServerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: TlsMaterial | undefined;
  /** By exact path, for every method. */
  readonly routes: ReadonlyMap<string, Handler>;
  /** Runs before every route; returns true when it has answered (preflights, refused origins). */
  readonly before: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Called after the listening socket was closed: resolves when those of other processes on the same port are as well. */
  readonly allClosed?: (() => Promise<void>) | undefined;
  /** For clients that send slowly on purpose. */
  readonly timeouts?: SlowClientTimeouts;
}

/** In milliseconds; a client that takes longer gets 408 and is cut off. */
export interface SlowClientTimeouts {
  readonly headersTimeout: number;
  /** For the whole request with its body. */
  readonly requestTimeout: number;
  /** How often Node.js looks whether one of the two is over. */
  readonly connectionsCheckingInterval: number;
}

const defaultTimeouts: SlowClientTimeouts = {
  headersTimeout: 20_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 5000,
};

/**
 * While draining, kept connections that are idle stay open this long, or half the drain time if that is shorter, so that a
 * request just sent on one is answered; a busy client may take a second to send it.
 */
const idleGraceMs = 3000;

/**
 * How long connections are accepted while draining, or a quarter of the drain time if that is shorter: so long it may take
 * until everybody knows that this process is not ready.
 */
const acceptGraceMs = 1000;
/** How long nobody must have connected before the listening socket is closed. */
const quietMs = 30;
/** How long to wait for that at most, and then for the other processes on the port; an eighth of the drain time if shorter. */
const holdMs = 250;

/** Longest body that is read only to keep the connection of a request that was answered without it. */
const maxDroppedBytes = 65_536;

const safeHeaders = ['x-content-type-options', 'nosniff', 'referrer-policy', 'no-referrer'];
const safeTlsHeaders = [...safeHeaders, 'strict-transport-security', 'max-age=31536000'];

/**
 * Has the headers that every answer carries, however it is written. They are added as its head is: a header that was set
 * before makes Node.js take a way that costs several times as much.
 */
class SafeResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  protected readonly safeHeaders: readonly string[] = safeHeaders;

  /** Without a status message, and with names in pairs or as an object, as everything here writes it. */
  override writeHead(status: number, headers?: unknown): this {
    const last = leavesMuchUnread(this.req) ? ['connection', 'close'] : [];
    return super.writeHead(status, [...this.safeHeaders, ...last, ...inPairs(headers)]);
  }
}

class SafeTlsResponse<Request extends IncomingMessage = IncomingMessage> extends SafeResponse<Request> {
  protected override readonly safeHeaders = safeTlsHeaders;
}

/**
 * Whether a request that is answered now has a body that may be long and was not read to its end. Node.js reads and drops
 * what is left before it takes the next request, so that a short rest costs less than another connection.
 */
function leavesMuchUnread({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxDroppedBytes;
}

function inPairs(headers: unknown): OutgoingHttpHeader[] {
  if (Array.isArray(headers)) return headers;
  const named = Object.entries((headers ?? {}) as OutgoingHttpHeaders);
  return named.flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
}

/** The listening socket: routing by path, and a drain that loses no request. */
export class HttpServer {
  readonly server: Server;
  readonly #options: HttpServerOptions;
  readonly #inFlight = new Set<ServerResponse>();
  /** One for all answers, each being `this` to its own: a closure for each is not free. */
  readonly #onClose: (this: ServerResponse) => void;
  #draining = false;
  /** While the listening socket is being closed: what requests wait for. */
  #closingListener: Promise<void> | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const inFlight = this.#inFlight;
    this.#onClose = function onClose() {
      inFlight.delete(this);
    };
    const limits = {
      ...(options.timeouts ?? defaultTimeouts),
      keepAliveTimeout: 65_000,
      maxHeaderSize: 16_384,
      ServerResponse: options.tls === undefined ? SafeResponse : SafeTlsResponse,
    };
    const listener = (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response);
    this.server =
      options.tls === undefined
        ? createServer(limits, listener)
        : createTlsServer({ ...limits, ...options.tls, minVersion: 'TLSv1.2' }, listener);
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Listens; returns the port. @throws Error with the system's code, such as EADDRINUSE */
  async listen(): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(this.#options.port, this.#options.host, () => {
        this.server.off('error', reject);
        resolve();
      });
    });
    return (this.server.address() as AddressInfo).port;
  }

  /**
   * Has `take` answer requests that offer another protocol. What it does not take is answered as if nothing were offered;
   * so is, in its turn, a request whose connection still waits for earlier answers.
   */
  onUpgrade(take: UpgradeHandler): void {
    this.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const earlier = [...this.#inFlight].filter(({ req }) => req.socket === socket);
      const reissue = () => reissueWithoutUpgrade(this.server, request, socket, head);
      if (earlier.length > 0) {
        void whenAnswered(earlier, request.socket).then((goesOn) =>
          goesOn ? reissue() : request.socket.destroySoon(),
        );
      } else if (!take(request, socket, head)) reissue();
    });
  }

  /** Uses another certificate for connections from now on. */
  renewTls({ cert, key }: TlsMaterial): void {
    if (this.server instanceof TlsServer) this.server.setSecureContext({ cert, key, minVersion: 'TLSv1.2' });
  }

  /**
   * Answers what is in flight and what still arrives, each with `connection: close`; stops accepting connections after a
   * moment, and resolves when all is answered or `timeoutMs` are over; then the connections are closed. With 0, at once.
   */
  async drain(timeoutMs: number): Promise<void> {
    if (this.#draining) return;
    this.#draining = true;
    const startedAt = performance.now();
    const leftOf = (ms: number) => Math.max(0, startedAt + ms - performance.now());
    for (const response of this.#inFlight) if (!response.headersSent) response.setHeader('connection', 'close');
    if (timeoutMs > 0) await delay(Math.min(acceptGraceMs, timeoutMs / 4));
    const { closed } = await this.#closeListener(timeoutMs);
    let isClosed = false;
    void closed.then(() => {
      isClosed = true;
    });
    await Promise.race([closed, delay(leftOf(Math.min(idleGraceMs, timeoutMs / 2)))]);
    this.server.closeIdleConnections();
    while (!isClosed && this.#inFlight.size > 0 && leftOf(timeoutMs) > 0) {
      await Promise.race([closed, delay(20)]);
      this.server.closeIdleConnections();
    }
    this.server.closeAllConnections();
    await closed;
  }

  /**
   * Closes the listening socket, and nothing else, at a moment when nobody has connected and was not accepted. Clients that
   * open a connection for each request open the next one when they have an answer, so requests are held back meanwhile.
   */
  async #closeListener(timeoutMs: number): Promise<{ readonly closed: Promise<void> }> {
    let goOn = () => {};
    this.#closingListener = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const maxMs = Math.min(holdMs, timeoutMs / 8);
    if (maxMs > 0) await whenNobodyConnects(this.server, { quietMs, maxMs });
    // Not `server.close()`, which ends idle connections at once: a request may be on its way on one of them.
    const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(this.server, () => resolve()));
    if (this.#options.allClosed && maxMs > 0) await Promise.race([this.#options.allClosed(), delay(maxMs)]);
    this.#closingListener = undefined;
    goOn();
    return { closed };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#inFlight.add(response);
    response.on('close', this.#onClose);
    if (response.socket === null) closeWithConnection(response);
    if (this.#draining) response.setHeader('connection', 'close');
    if (this.#closingListener !== undefined) await this.#closingListener;
    if (response.closed) return; // the client went meanwhile
    if (this.#options.before(request, response)) return;
    const url = pathAndQueryOf(request.url ?? '/');
    request.url = url;
    const end = url.indexOf('?');
    const handler = this.#options.routes.get(end === -1 ? url : url.slice(0, end));
    if (handler === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('Not found\n');
      return;
    }
    await handler(request, response);
  }
}

/**
 * The path and query of a request's target. A proxy may send the whole address instead (RFC 9112, section 3.2.2); the host in
 * it decides nothing, as `Host` does not.
 */
export function pathAndQueryOf(target: string): string {
  if (target.startsWith('/')) return target;
  const rest = target.replace(/^https?:\/\/[^/?#]*/i, '');
  return rest.startsWith('/') || rest === target ? rest : `/${rest}`;
}
