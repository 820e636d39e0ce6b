import { randomUUID } from 'node:crypto';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ExecutionArgs, ExecutionResult, GraphQLSchema } from 'graphql';
import { type ConnectionInitMessage, type Context, handleProtocols, makeServer, type Server } from 'graphql-ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { tokenExpired } from '../../auth/verifyToken.js';
import { GatewayError } from '../../errors.js';
import { withInfinities } from '../../parseJson.js';
import { credentialsOfSocket, type Identify, type Identity } from '../identify.js';
import { atTime } from './atTime.js';
import { isOriginAllowed } from './browserOrigin.js';
import type { LiveOperations, ReadyOperation } from './LiveOperations.js';
import type { OpenStreams } from './OpenStreams.js';
import type { ResultStream } from './ResultStream.js';

export interface WebSocketEndpointOptions {
  readonly schema: GraphQLSchema;
  readonly operations: LiveOperations;
  readonly identify: Identify;
  readonly streams: OpenStreams;
  /** Browser origins that may connect besides our own. */
  readonly allowedOrigins: readonly string[];
  /** Largest message, in bytes. */
  readonly maxMessageBytes: number;
  /** Most operations at once on one socket. */
  readonly maxOperations: number;
  /** Between two pings, in milliseconds; a peer that has not answered one by the next is dropped. */
  readonly keepAliveMs: number;
  /** How long a socket may take to say who it is, in milliseconds. */
  readonly initTimeoutMs: number;
}

/** What hangs on one socket. */
interface Connection {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  readonly gone: AbortController;
  /** Operations under way, by id. */
  readonly running: Map<string, 'one result' | 'many results'>;
  identity: Identity | undefined;
  context: SocketContext | undefined;
  forgetExpiry: () => void;
}

type SocketContext = Context<ConnectionInitMessage['payload'], Connection>;

/** Bytes not yet taken by the peer above which nothing more is read from it. */
const maxBacklogBytes = 1_048_576;
/** How long a peer may take to answer our close, in milliseconds. */
const closeGraceMs = 1000;

const closeCodes = { goingAway: 1001, tryAgainLater: 1013, unauthorized: 4401, forbidden: 4403 } as const;

/** `/graphql` over WebSocket, in the protocol `graphql-transport-ws`. */
export class WebSocketEndpoint {
  readonly #options: WebSocketEndpointOptions;
  readonly #sockets: WebSocketServer;
  readonly #protocol: Server<Connection>;

  constructor(options: WebSocketEndpointOptions) {
    this.#options = options;
    this.#sockets = new WebSocketServer({
      noServer: true,
      maxPayload: options.maxMessageBytes,
      handleProtocols,
      clientTracking: false,
      perMessageDeflate: false, // a small message may unpack to a huge one, and ours are short
    });
    this.#protocol = makeServer<ConnectionInitMessage['payload'], Connection>({
      connectionInitWaitTimeout: options.initTimeoutMs,
      onConnect: (context) => this.#connect(context),
      onSubscribe: (context, id, payload) => this.#prepare(context, id, payload),
      execute: (args) => this.#perform(args),
      subscribe: (args) => this.#perform(args),
      onComplete: ({ extra }, id) => this.#completed(extra, id),
    });
  }

  /** Answers a request to upgrade: with a socket, or with the reason why not. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { streams, allowedOrigins } = this.#options;
    if (!isOriginAllowed(request.headers, allowedOrigins)) refuse(socket, 403, 'Origin not allowed (CORS_ORIGINS)');
    else if (!streams.hasRoom) refuse(socket, 503, 'No more connections (MAX_CONNECTIONS)');
    else this.#sockets.handleUpgrade(request, socket, head, (opened) => this.#serve(opened, request));
  }

  #serve(socket: WebSocket, request: IncomingMessage): void {
    const connection: Connection = {
      socket,
      request,
      gone: new AbortController(),
      running: new Map(),
      identity: undefined,
      context: undefined,
      forgetExpiry: () => {},
    };
    const remove = this.#options.streams.add('ws', {
      shutDown: () => shutDown(connection),
      destroy: () => socket.terminate(),
    });
    const stopPings = keepAlive(socket, this.#options.keepAliveMs);
    // What is wrong with a frame ends the socket with a code of the protocol; the close event follows.
    socket.on('error', () => {});
    socket.on('ping', () => holdBack(socket));
    const closed = this.#protocol.opened(
      {
        protocol: socket.protocol,
        send: (data) => send(socket, data),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (receive) => {
          socket.on('message', (data) => {
            holdBack(socket);
            receive(withInfinities(String(data))).catch((error) => this.#crash(socket, error));
          });
        },
      },
      connection,
    );
    socket.once('close', (code, reason) => {
      stopPings();
      connection.forgetExpiry();
      connection.gone.abort();
      remove();
      void closed(code, String(reason));
    });
  }

  async #connect(context: SocketContext): Promise<boolean> {
    const { socket, request } = context.extra;
    try {
      const identity = await this.#options.identify(credentialsOfSocket(context.connectionParams, request));
      if (socket.readyState !== socket.OPEN) return false;
      context.extra.identity = identity;
      context.extra.context = context;
      // Forbidden and not unauthorized: clients take the latter for final, and a new token may be at hand.
      context.extra.forgetExpiry = atTime(identity.caller.expiresAt, () => end(socket, 'forbidden', tokenExpired));
      return true;
    } catch (error) {
      const { message, extensions } = this.#options.operations.mask(error, randomUUID());
      end(socket, extensions['code'] === 'UNAUTHENTICATED' ? 'unauthorized' : 'tryAgainLater', message);
      return false;
    }
  }

  async #prepare({ extra, subscriptions }: SocketContext, id: string, payload: object) {
    const { operations, streams, maxOperations, schema } = this.#options;
    const { identity, gone } = extra;
    const requestId = randomUUID();
    const refused = (error: GatewayError) => [operations.mask(error, requestId)];
    if (identity === undefined)
      return refused(new GatewayError('UNAUTHENTICATED', 'The socket has not said who it is'));
    if (streams.draining) return refused(new GatewayError('RATE_LIMITED', 'The gateway is shutting down'));
    if (Object.keys(subscriptions).length > maxOperations) {
      const message = `At most ${maxOperations} operations at once on one connection (MAX_SUBSCRIPTIONS)`;
      return refused(new GatewayError('RATE_LIMITED', message));
    }
    const prepared = await operations.prepare(payload, { ...identity, requestId, signal: gone.signal }, 'ws');
    if (prepared.kind === 'refused') return [...prepared.errors];
    extra.running.set(id, prepared.type === 'subscription' ? 'many results' : 'one result');
    const { document, operationName } = prepared;
    return { schema, document, operationName, contextValue: prepared } satisfies ExecutionArgs;
  }

  /** Results come masked; graphql-ws only writes them. */
  #perform({ contextValue }: ExecutionArgs): Promise<ExecutionResult | ResultStream> {
    return this.#options.operations.perform(contextValue as ReadyOperation);
  }

  #completed(connection: Connection, id: string): void {
    connection.running.delete(id);
    // Not yet: the message that the operation is complete has still to be written.
    if (this.#options.streams.draining) setImmediate(() => closeWhenIdle(connection));
  }

  #crash(socket: WebSocket, error: unknown): void {
    if (!/^Unexpected message of type/.test(String((error as Error)?.message))) {
      this.#options.operations.mask(error, randomUUID());
    }
    socket.close(4400, 'Invalid message received');
  }
}

/** Answers queries and mutations under way; subscriptions are cut, so that clients know they have not come to their end. */
function shutDown(connection: Connection): void {
  for (const [id, kind] of connection.running) {
    const stream = connection.context?.subscriptions[id];
    if (kind === 'one result') continue;
    connection.running.delete(id);
    // Once forgotten, its end is not announced as completion.
    delete connection.context?.subscriptions[id];
    void (stream as ResultStream | null | undefined)?.return();
  }
  closeWhenIdle(connection);
}

function closeWhenIdle({ socket, running }: Connection): void {
  if (running.size > 0) return;
  end(socket, 'goingAway', 'shutting down');
}

function end(socket: WebSocket, code: keyof typeof closeCodes, reason: string): void {
  // A close frame has room for 123 bytes; our messages are ASCII.
  socket.close(closeCodes[code], reason.slice(0, 123));
  const timer = setTimeout(() => socket.terminate(), closeGraceMs);
  socket.once('close', () => clearTimeout(timer));
}

/** Resolves when the system has taken the message: who awaits it writes no faster than the peer reads. */
function send(socket: WebSocket, data: string): Promise<void> {
  if (socket.readyState !== socket.OPEN) return Promise.resolve();
  return new Promise((resolve) => {
    socket.send(data, () => {
      if (socket.isPaused && socket.bufferedAmount < maxBacklogBytes) socket.resume();
      resolve();
    });
  });
}

/** Reads nothing more from a peer that does not read what it asked for. */
function holdBack(socket: WebSocket): void {
  if (socket.bufferedAmount > maxBacklogBytes) socket.pause();
}

function keepAlive(socket: WebSocket, everyMs: number): () => void {
  let answered = true;
  socket.on('pong', () => {
    answered = true;
  });
  const timer = setInterval(() => {
    if (!answered) socket.terminate();
    answered = false;
    socket.ping();
  }, everyMs);
  return () => clearInterval(timer);
}

function refuse(socket: Duplex, status: number, reason: string): void {
  socket.on('error', () => {});
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(reason) + 1}\r\n\r\n${reason}\n`,
  );
}
