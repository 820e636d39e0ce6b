import type { IncomingMessage } from 'node:http';
import { CloseCode, type Message, MessageType, type PingMessage, parseMessage } from 'graphql-ws';
import type { RawData, WebSocket } from 'ws';
import type { Holder, Release } from '../admission/Ledger.js';
import { holderOf } from '../auth/caller.js';
import { credentialsOf, credentialsOfSocket, type Identity } from '../auth/identify.js';
import { tokenExpired } from '../auth/verifyToken.js';
import { requestIdOf } from '../http/facts.js';
import { isNestedWithin, parseJson } from '../json.js';
import { addressOf } from '../network/peer.js';
import { type Client, clientOf } from '../operations/clientName.js';
import { atTime } from '../process/atTime.js';
import { goingAway, tryAgainLater } from './closeCodes.js';
import { keepAlive } from './keepAlive.js';
import type { LiveOptions, LiveTracing } from './LiveOptions.js';
import { MessagePace } from './MessagePace.js';
import { SocketOperations } from './SocketOperations.js';
import { UnfinishedMessage } from './UnfinishedMessage.js';

/** Milliseconds that a connection may take to send `connection_init`. */
const initTimeoutMs = 3000;
/** Backpressure: while more bytes than this wait for the peer, nothing is read from it. */
const maxBacklogBytes = 1_048_576;
/** Milliseconds that an unauthenticated peer has to answer our close frame; an abrupt end costs it hardly anything. */
const unauthenticatedGraceMs = 100;
/** The longest pause in reading, after a refusal or a message beyond the pace, in milliseconds. */
const longestPauseMs = 1000;
const maxPingDepth = 64;

type Phase = 'unauthenticated' | 'verifying' | { readonly operations: SocketOperations } | 'closing';

/** One socket from upgrade to close. It counts against its address until it is authenticated, then against its caller. */
export class SocketConnection {
  readonly #unfinished: UnfinishedMessage;
  #phase: Phase = 'unauthenticated';
  #holder: Holder;
  /** Holds only the address until the caller is authenticated. */
  #identity: Partial<Identity>;
  readonly #pace: MessagePace;
  #forgetExpiry = () => {};
  /** Whether the log already tells how this connection ended: its refusal was logged, or it was authenticated. */
  #isLogged = false;
  /** While this timer runs, nothing is read from the socket. */
  #pause: NodeJS.Timeout | undefined;
  readonly #openedAt = performance.now();
  readonly #requestId: string;
  readonly #trace: ReturnType<LiveTracing['socket']> | undefined;

  /** `leavePlace` gives back the socket's place among the unauthenticated connections. */
  constructor(
    private readonly socket: WebSocket,
    private readonly request: IncomingMessage,
    private leavePlace: Release,
    private readonly options: LiveOptions,
  ) {
    this.#holder = addressOf(request);
    this.#identity = { remoteAddress: credentialsOf(request).remoteAddress };
    this.#requestId = requestIdOf(request);
    this.#trace = options.tracing?.socket(request, '/graphql');
    const { ledger, operations, streams } = options;
    this.#pace = new MessagePace(() => operations.waitOfRefusal(this.#identity));
    const close = (code: number, reason: string) => this.#close(code, reason);
    this.#unfinished = new UnfinishedMessage(socket, request.socket, ledger, operations.limits.bodyBytes, close);
    const remove = streams.add('ws', { shutDown: () => this.#shutDown(), destroy: () => socket.terminate() });
    // A ping counts no bytes: an idle socket must not be cut because the ledger has no room.
    const ping = () => void this.#write(0, (taken) => socket.ping(undefined, false, taken));
    const stopPings = keepAlive(socket, ping, options.keepAliveMs);
    const initTimer = setTimeout(() => {
      if (this.#phase !== 'unauthenticated') return;
      this.#close(CloseCode.ConnectionInitialisationTimeout, 'Connection initialisation timeout');
    }, initTimeoutMs);
    // After a malformed frame `ws` closes the socket with the right code; the close event follows.
    socket.on('error', () => this.#end());
    socket.on('ping', (data) => {
      this.#holdBack();
      this.#keepPace(data.length);
      void this.#write(data.length, (taken) => socket.pong(data, false, taken));
    });
    socket.on('pong', (data) => this.#keepPace(data.length));
    socket.on('message', (data) => this.#receive(data));
    socket.once('close', () => {
      clearTimeout(initTimer);
      stopPings();
      remove();
      this.#turnAway('The socket was closed before it was authenticated');
      this.#end();
      this.#trace?.end();
      this.leavePlace();
    });
    if (socket.protocol === '') this.#close(CloseCode.SubprotocolNotAcceptable, 'Subprotocol not acceptable');
  }

  #receive(data: RawData): void {
    this.#holdBack();
    const phase = this.#phase;
    if (phase === 'closing') return;
    const beganAt = performance.now();
    const text = String(data);
    const message = readMessage(text);
    const pong = message?.type === MessageType.Ping ? pongTo(message) : undefined;
    this.options.operations.noteWork(this.#holder, beganAt);
    switch (message?.type) {
      case MessageType.ConnectionInit:
        void this.#authenticate(message.payload);
        return;
      case MessageType.Ping:
        if (pong === undefined) break;
        this.#keepPace(text.length);
        void this.#send(pong);
        return;
      case MessageType.Pong:
        this.#keepPace(text.length);
        return;
      case MessageType.Subscribe:
        this.#run(message.id, { ...message.payload }, text.length);
        return;
      case MessageType.Complete:
        if (typeof phase === 'object' && phase.operations.complete(message.id)) return;
        this.#keepPace(text.length);
        return;
    }
    this.#close(CloseCode.BadRequest, 'Invalid message received');
  }

  async #authenticate(parameters: Readonly<Record<string, unknown>> | undefined): Promise<void> {
    if (this.#phase !== 'unauthenticated') {
      return this.#close(CloseCode.TooManyInitialisationRequests, 'Too many initialisation requests');
    }
    this.#phase = 'verifying';
    const { identify, ledger } = this.options;
    try {
      const identity = await identify(credentialsOfSocket(parameters, this.request));
      if (this.#phase !== 'verifying') return; // it was closed while the token was verified
      const holder = holderOf(identity.caller);
      const leavePlace = ledger.take('streams', holder);
      this.leavePlace();
      this.leavePlace = leavePlace;
      this.#holder = holder;
      this.#identity = identity;
      this.#unfinished.authenticate(holder);
      const send = (message: string) => this.#send(message);
      const onIdle = () => this.#closeWhenDrained();
      const onRefused = (size: number) => this.#readNothingFor(this.#pace.afterRefusal(size));
      const client = this.#clientOf(parameters);
      const operations = new SocketOperations({ ...this.options, identity, client, send, onIdle, onRefused });
      this.#phase = { operations };
      this.#isLogged = true;
      // Forbidden, not Unauthorized: clients do not reconnect after Unauthorized, but may have a new token.
      this.#forgetExpiry = atTime(identity.caller.expiresAt, () => this.#close(CloseCode.Forbidden, tokenExpired));
      await this.#send(JSON.stringify({ type: MessageType.ConnectionAck }));
    } catch (error) {
      this.#isLogged = true;
      const facts = { ...this.#known, client: this.#clientOf(parameters) };
      const refuse = async () => this.options.operations.refuse(error, facts, 'ws');
      const { errors } = await (this.#trace?.run(refuse) ?? refuse());
      const [refusal] = errors;
      const isUnauthenticated = refusal?.extensions?.['code'] === 'UNAUTHENTICATED';
      this.#close(isUnauthenticated ? CloseCode.Unauthorized : tryAgainLater, refusal?.message ?? '');
    }
  }

  #run(id: string, parameters: Readonly<Record<string, unknown>>, size: number): void {
    if (typeof this.#phase !== 'object') {
      this.#close(CloseCode.Unauthorized, 'Unauthorized');
    } else if (this.#phase.operations.has(id)) {
      this.#close(CloseCode.SubscriberAlreadyExists, `Subscriber for ${id} already exists`);
    } else {
      const { operations } = this.#phase;
      const run = () => operations.run(id, parameters, size);
      const running = this.#trace?.run(run) ?? run();
      running.catch((error) => {
        this.options.operations.refuse(error, { requestId: crypto.randomUUID(), startedAt: performance.now() }, 'ws');
        this.#close(CloseCode.InternalServerError, 'Internal server error');
      });
    }
  }

  /** Finishes queries and mutations; subscriptions are cut without `complete`, because they have not ended. */
  #shutDown(): void {
    if (typeof this.#phase === 'object') this.#phase.operations.cutSubscriptions();
    this.#closeWhenDrained();
  }

  #closeWhenDrained(): void {
    const isBusy = typeof this.#phase === 'object' && !this.#phase.operations.idle;
    if (this.options.streams.draining && !isBusy) this.#close(goingAway, 'shutting down');
  }

  /** Ends all operations of the socket at once, and closes it with the reason. */
  #close(code: number, reason: string): void {
    if (this.#phase === 'closing') return;
    if (typeof this.#phase !== 'object') {
      this.#turnAway(reason);
      const timer = setTimeout(() => this.socket.terminate(), unauthenticatedGraceMs);
      this.socket.once('close', () => clearTimeout(timer));
    }
    this.#end();
    // A close frame has room for 123 bytes.
    this.socket.close(code, Buffer.byteLength(reason) <= 123 ? reason : `${reason.slice(0, 40)}…`);
  }

  /** Reports, once, that a socket ends without having been authenticated. */
  #turnAway(reason: string): void {
    if (this.#isLogged || typeof this.#phase === 'object' || this.options.streams.draining) return;
    this.#isLogged = true;
    const facts = { ...this.#known, client: clientOf(this.request.headers) };
    this.options.operations.turnAway(undefined, reason, facts, 'ws');
  }

  get #known() {
    return { requestId: this.#requestId, startedAt: this.#openedAt, peer: this.request.peer };
  }

  #clientOf(parameters: Readonly<Record<string, unknown>> | undefined): Client {
    const given = Object.entries(parameters ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
    return clientOf({ ...this.request.headers, ...Object.fromEntries(given) });
  }

  #end(): void {
    const phase = this.#phase;
    this.#phase = 'closing';
    this.#forgetExpiry();
    if (typeof phase === 'object') phase.operations.stop();
  }

  /** Resolves when the system has taken the message, so that senders wait for a slow peer. */
  #send(text: string): Promise<void> {
    const beganAt = performance.now();
    const sending = this.#write(Buffer.byteLength(text), (taken) => this.socket.send(text, taken));
    this.options.operations.noteWork(this.#holder, beganAt);
    return sending;
  }

  async #write(bytes: number, write: (taken: () => void) => void): Promise<void> {
    if (this.socket.readyState !== this.socket.OPEN) return;
    const taken = new Promise<void>((resolve) => write(resolve));
    const waiting = Math.min(bytes, this.socket.bufferedAmount);
    const release = this.options.unread.hold(this.request.socket, this.#holder, waiting);
    await taken;
    release?.();
    this.#readOn();
  }

  /** Backpressure: stops reading from a peer that does not read its answers. */
  #holdBack(): void {
    if (this.socket.bufferedAmount > maxBacklogBytes) this.socket.pause();
  }

  /** Paces reading after a message that is no operation; closes the socket when there are too many. */
  #keepPace(characters: number): void {
    if (this.#phase === 'closing') return;
    const waitMs = this.#pace.afterMessage(characters);
    if (waitMs === Number.POSITIVE_INFINITY) {
      this.socket.pause();
      this.#close(tryAgainLater, 'Too many messages');
    } else this.#readNothingFor(waitMs);
  }

  #readNothingFor(ms: number): void {
    if (ms === 0) return;
    clearTimeout(this.#pause);
    this.socket.pause();
    this.#pause = setTimeout(
      () => {
        this.#pause = undefined;
        this.#readOn();
      },
      Math.min(ms, longestPauseMs),
    ).unref();
  }

  #readOn(): void {
    const { socket } = this;
    if (socket.isPaused && this.#pause === undefined && socket.bufferedAmount < maxBacklogBytes) socket.resume();
  }
}

/** Parses a message of the protocol; undefined when it is invalid. */
function readMessage(text: string): Message | undefined {
  try {
    const json = parseJson(text);
    return typeof json === 'object' ? parseMessage(json) : undefined; // `parseMessage` would parse a string again
  } catch {
    return undefined;
  }
}

/** The pong with the payload of the ping; undefined for a payload nested too deeply to be written safely. */
function pongTo({ payload }: PingMessage): string | undefined {
  return isNestedWithin(payload, maxPingDepth) ? JSON.stringify({ type: MessageType.Pong, payload }) : undefined;
}
