import { CloseCode, MessageType } from 'graphql-ws';
import type { WebSocket } from 'ws';
import { Pace } from '../admission/Pace.js';
import { type Holder, type Release, rateLimited } from '../admission/Places.js';
import { networkOf } from '../admission/Quota.js';
import { tokenExpired } from '../auth/verifyToken.js';
import type { GatewayError } from '../errors/errors.js';
import { type Edge, shuttingDown } from '../http/edge.js';
import { clientOf, requestOf, type Variables } from '../operations/GraphQLRequest.js';
import { type Answer, type OperationFacts, OperationRecord, type RequestFacts } from '../operations/Operation.js';
import type { ResultStream } from '../operations/ResultStream.js';
import { atTime } from '../process/pause.js';
import { boundUnfinished, byLowerCaseName, forgetHeaders, keepAlive, readMessage, weightOf } from './socketBounds.js';

/** Standard close codes (RFC 6455, 7.4, and its registry), in addition to those of `graphql-transport-ws`. */
const goingAway = 1001;
const tooBig = 1009;
const tryAgainLater = 1013;

/** Milliseconds that a connection may take to send `connection_init`. */
const initTimeoutMs = 3000;

/** Bytes that a message takes besides its own until the system has taken it. Measured: 1.8 kB. */
const messageBytes = 1800;

/** Messages other than operations, such as pings, that a socket may send without being charged for them. */
const freeMessages = { atOnce: 20, everyMs: 500, longestMs: 0 };

/** Bytes that a message takes, besides its own, while it waits for its turn. */
const waitingBytes = 500;

/**
 * One socket from upgrade to close, in the protocol `graphql-transport-ws`. It counts against its address until it is
 * authenticated, then against its caller.
 */
export class SocketSession {
  readonly #pace = new Pace(freeMessages);
  #hasInit = false;
  /** Set once authentication has succeeded, or the log says why it has not. */
  #isSettled = false;
  /** Ends each operation, by the id that the client may not use for another one yet. */
  readonly #running = new Map<string, AbortController>();
  /** How many operations have work that has not ended, those that the client has completed included. */
  #working = 0;
  /** How many messages wait for their turn. */
  #waiting = 0;

  /** `leavePlace` gives back the place among the unauthenticated connections. The end of the connection calls it as well. */
  constructor(
    private readonly socket: WebSocket,
    private facts: RequestFacts,
    private readonly leavePlace: Release,
    private readonly edge: Edge,
  ) {
    const { metrics, config } = edge;
    boundUnfinished(socket, () => this.#roomFor(config.MAX_BODY_BYTES));
    metrics.openStreams.add('ws', 1);
    const initTimer = setTimeout(() => {
      if (!this.#hasInit) this.#close(CloseCode.ConnectionInitialisationTimeout, 'Connection initialisation timeout');
    }, initTimeoutMs);
    keepAlive(socket, config.keepAliveMs);
    socket.on('error', () => {}); // after a malformed frame `ws` closes the socket with the right code
    socket.on('draining', () => this.#closeWhenDrained()); // an event of ours: `webSocketHandler` emits it
    socket.on('message', (data) => void this.#receive(String(data)));
    socket.on('pong', (data) => this.#countMessage(data.length));
    socket.on('ping', (data) => {
      this.#countMessage(data.length);
      void this.#write((taken) => socket.pong(data, false, taken));
    });
    socket.once('close', () => {
      clearTimeout(initTimer);
      metrics.openStreams.add('ws', -1);
      this.#end('The socket was closed before it was authenticated');
    });
    if (socket.protocol === '') {
      this.#close(CloseCode.SubprotocolNotAcceptable, 'The subprotocol must be graphql-transport-ws');
    }
  }

  /** The holder that the socket's bytes and work count against: its address until it is authenticated. */
  get #holder(): Holder {
    const { caller, remoteAddress } = this.facts;
    return caller === undefined ? networkOf(remoteAddress) : caller.holder;
  }

  get #isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN;
  }

  /** Has a caller's message wait for its turn unparsed, like a body. Meanwhile the socket receives no more. */
  async #receive(text: string): Promise<void> {
    const startedAt = performance.now();
    const turn = this.facts.caller && this.edge.quota.turnOf(this.#holder);
    if (turn !== undefined) {
      this.#waiting += 1;
      this.socket.pause();
      await turn.finally(this.#roomFor(waitingBytes + text.length));
      this.#waiting -= 1;
      this.socket.resume();
    }
    if (this.#isOpen) this.#handle(text, startedAt);
    this.#closeWhenDrained();
  }

  #handle(text: string, startedAt: number): void {
    const message = this.edge.quota.timed(this.#holder, () => readMessage(text));
    switch (message?.type) {
      case MessageType.ConnectionInit:
        return void this.#authenticate(message.payload ?? {});
      case MessageType.Ping:
        this.#countMessage(text.length);
        return void this.#send('{"type":"pong"}');
      case MessageType.Pong:
        return void this.#countMessage(text.length);
      case MessageType.Subscribe:
        return void this.#subscribe(message.id, { ...message.payload }, text.length, startedAt);
      case MessageType.Complete:
        return void this.#complete(message.id, text.length);
    }
    this.#close(CloseCode.BadRequest, 'Invalid message received');
  }

  async #authenticate(parameters: Variables): Promise<void> {
    if (this.#hasInit) return this.#close(CloseCode.TooManyInitialisationRequests, 'Too many initialisation requests');
    this.#hasInit = true;
    const { authenticator, places, operations } = this.edge;
    try {
      const presented = { ...this.facts.request.headers, ...byLowerCaseName(parameters) };
      this.facts = { ...this.facts, client: clientOf(presented) };
      const identity = await authenticator.identify(presented);
      if (!this.#isOpen) return; // it was closed while the token was verified
      this.facts = { ...this.facts, ...identity };
      const { holder, expiresAt } = identity.caller;
      this.socket.once('close', places.take('streams', holder));
      this.leavePlace();
      this.#isSettled = true;
      forgetHeaders(this.facts.request);
      // Forbidden, not Unauthorized: clients do not reconnect after Unauthorized, but may have a new token.
      const forgetExpiry = atTime(expiresAt, () => this.#close(CloseCode.Forbidden, tokenExpired));
      this.socket.once('close', forgetExpiry);
      await this.#send('{"type":"connection_ack"}');
    } catch (error) {
      if (this.#isSettled) return; // it was closed while the token was verified
      this.#isSettled = true;
      const { status, errors } = operations.refuse(new OperationRecord(this.facts, 'ws'), error);
      this.#close(status === 401 ? CloseCode.Unauthorized : tryAgainLater, errors[0]?.message ?? '');
    }
  }

  async #subscribe(id: string, parameters: Variables, characters: number, startedAt: number): Promise<void> {
    const { caller, fromRouter } = this.facts;
    if (caller === undefined) return this.#close(CloseCode.Unauthorized, 'Unauthorized');
    if (Date.now() >= caller.expiresAt) return this.#close(CloseCode.Forbidden, tokenExpired); // the clock was set forward
    if (this.#running.has(id)) {
      return this.#close(CloseCode.SubscriberAlreadyExists, `Subscriber for ${id} already exists`);
    }
    const ended = new AbortController();
    const { signal } = ended;
    const requestId = crypto.randomUUID();
    const facts = { ...this.facts, requestId, startedAt, signal, caller, fromRouter };
    this.#running.set(id, ended);
    this.#working += 1;
    try {
      await this.#run(id, facts, parameters, characters);
    } catch (error) {
      // A bug: it ends this socket, not the process.
      this.edge.operations.refuse(new OperationRecord(facts, 'ws'), error);
      this.#close(CloseCode.InternalServerError, 'Internal server error');
    } finally {
      this.#working -= 1;
      this.#closeWhenDrained();
    }
  }

  async #run(id: string, facts: OperationFacts, parameters: Variables, characters: number): Promise<void> {
    const { operations, quota, draining, config } = this.edge;
    const most = config.MAX_SUBSCRIPTIONS;
    const { signal } = facts;
    const record = new OperationRecord(facts, 'ws');
    let result: Answer | ResultStream | undefined;
    try {
      if (draining.aborted) throw shuttingDown;
      if (this.#working > most) {
        throw rateLimited(`At most ${most} operations at once on one connection (MAX_SUBSCRIPTIONS)`);
      }
      quota.admit(facts);
      const request = requestOf('POST', parameters, characters);
      result = await operations.run(operations.prepare(record, facts, request));
    } catch (error) {
      result = operations.refuse(record, error);
    }
    const isStream = result.kind === 'stream';
    let last: object = { id, type: MessageType.Complete };
    if (result.kind !== 'stream' && record.way === undefined) {
      // Nothing ran: the operation was refused.
      this.#charge(characters);
      last = { id, type: MessageType.Error, payload: result.errors };
    } else {
      const head = `{"id":${JSON.stringify(id)},"type":"next","payload":`;
      const send = ({ text, release }: Answer) => {
        release?.();
        return signal.aborted ? undefined : this.#send(`${head}${text}}`);
      };
      const sent = result.kind === 'stream' ? result.sendTo(send) : send(result);
      result = undefined; // only the bytes are kept until the client has read them
      await sent;
    }
    // The drain has ended the source of a subscription, which is not complete: the client is told by the close code.
    if (signal.aborted || (isStream && draining.aborted)) return;
    this.#running.delete(id);
    await this.#send(JSON.stringify(last));
  }

  #complete(id: string, characters: number): void {
    this.#running.get(id)?.abort();
    if (!this.#running.delete(id)) this.#countMessage(characters);
  }

  #closeWhenDrained(): void {
    if (this.edge.draining.aborted && this.#working + this.#waiting === 0) this.#close(goingAway, 'shutting down');
  }

  /** Ends all operations of the socket at once, and closes it with the reason. */
  #close(code: number, reason: string): void {
    if (!this.#isOpen) return;
    this.#end(reason);
    // A close frame has room for 123 bytes.
    this.socket.close(code, Buffer.byteLength(reason) <= 123 ? reason : `${reason.slice(0, 40)}…`);
  }

  /** Ends all operations. If the socket was not authenticated, logs the reason, once. */
  #end(reason: string): void {
    for (const ended of this.#running.values()) ended.abort();
    if (this.#isSettled || this.edge.draining.aborted) return;
    this.#isSettled = true;
    this.edge.operations.turnAway(new OperationRecord(this.facts, 'ws'), reason);
  }

  #send(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    return this.#write((taken) => this.socket.send(bytes, { binary: false }, taken));
  }

  /** Resolves when the system has taken the message, so that senders wait for a slow peer. */
  async #write(write: (taken: () => void) => void): Promise<void> {
    const before = this.socket.bufferedAmount;
    const taken = new Promise<void>((resolve) => write(resolve));
    const bytes = this.socket.bufferedAmount - before;
    const release = this.edge.unread.hold(this.facts.request.socket, this.#holder, bytes && bytes + messageBytes);
    await taken;
    release?.();
  }

  /** Counts a message that is not an operation; beyond the free ones, charges it as a refusal. */
  #countMessage(characters: number): void {
    if (this.#pace.take(weightOf(characters)) > 0) this.#charge(characters);
  }

  /** Charges a message as refusals; closes the socket when the caller has had too many. */
  #charge(characters: number): void {
    const waitMs = this.edge.quota.waitOfRefusal(this.facts, weightOf(characters));
    if (waitMs === undefined) this.#close(tryAgainLater, 'Too many messages');
  }

  /** Takes room for a message of a caller, or closes the socket. */
  #roomFor(bytes: number): Release | undefined {
    try {
      if (this.facts.caller !== undefined) return this.edge.places.take('bytes', this.#holder, bytes);
      this.#close(tooBig, 'Too much before connection_ack');
    } catch (refusal) {
      this.#close(tryAgainLater, (refusal as GatewayError).message);
    }
    return undefined;
  }
}
