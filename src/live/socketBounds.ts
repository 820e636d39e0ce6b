import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import { type Message, parseMessage } from 'graphql-ws';
import type { WebSocket } from 'ws';
import type { Release } from '../admission/Places.js';
import type { Variables } from '../operations/GraphQLRequest.js';

/** How many messages, or refusals, a message counts as: a long one counts as several. */
export function weightOf(characters: number): number {
  return Math.max(1, Math.ceil(characters / 16_384));
}

/** Bytes of an unfinished message that nobody counts. A connection that sends more before it is authenticated is closed. */
const freeBytes = 16_384;

/** About how much memory a piece of a frame takes besides its bytes: a peer may send single bytes. */
const pieceBytes = 256;

/** The receiver of ws 8: what it has not read yet, in pieces as they came, and the parts of a message that it has read. */
interface Receiver extends Writable {
  readonly _buffers: Buffer[];
  readonly _bufferedBytes: number;
  readonly _messageLength: number;
}

/**
 * Bounds the bytes of a message that is not complete, and of control frames between its parts. `onMany`: called when there
 * are more than {@link freeBytes}; takes room for the longest message and returns how to give it back, or closes the socket.
 */
export function boundUnfinished(socket: WebSocket, onMany: () => Release | undefined): void {
  const { _receiver: receiver } = socket as unknown as { readonly _receiver: Receiver };
  const write = receiver._write.bind(receiver);
  const isFree = (next: number) =>
    pieceBytes * receiver._buffers.length + receiver._bufferedBytes + receiver._messageLength + next <= freeBytes;
  let release: Release | undefined;
  receiver._write = (bytes: Buffer, encoding, done) => {
    // ws 8.22 and 8.23 would read what has arrived behind a malformed frame as the rest of that frame, and throw, because they
    // have forgotten its mask: that would end the process.
    if (receiver.errored) return;
    if (!isFree(bytes.length)) release ??= onMany();
    if (release !== undefined || isFree(bytes.length)) return write(bytes, encoding, done);
    // What still comes is not read: `ws` would unmask it, which takes most of the time that such an attack costs.
    done(new Error('no room'));
  };
  const giveBack = () => {
    if (!isFree(0)) return;
    release?.();
    release = undefined;
  };
  socket.on('message', giveBack).on('ping', giveBack).on('pong', giveBack);
  socket.once('close', () => release?.());
}

/** Pings that a peer may leave unanswered: a busy peer answers late. */
const maxUnanswered = 3;

/**
 * Pings at intervals, and ends a socket whose peer answers no ping. While bytes wait to be sent it does not ping: the peer
 * would have to read them first, and {@link Unread} ends a peer that does not. Ends with the socket.
 */
export function keepAlive(socket: WebSocket, everyMs: number): void {
  let unanswered = 0;
  const restart = () => {
    unanswered = 0;
  };
  const timer = setInterval(() => {
    if (socket.bufferedAmount > 0) return restart();
    if (unanswered === maxUnanswered) return socket.terminate();
    unanswered += 1;
    socket.ping();
  }, everyMs);
  socket.on('pong', restart).once('close', () => clearInterval(timer));
}

/** Parses a message of the protocol; undefined when it is invalid. */
export function readMessage(text: string): Message | undefined {
  try {
    const json = JSON.parse(text);
    return typeof json === 'object' ? parseMessage(json) : undefined; // `parseMessage` would parse a string once more
  } catch {
    return undefined;
  }
}

/** The parameters of `connection_init`, which take precedence over the headers of the upgrade, by their names in lower case. */
export function byLowerCaseName(parameters: Variables): Variables {
  const present = Object.entries(parameters).filter(([, value]) => value != null);
  return Object.fromEntries(present.map(([name, value]) => [name.toLowerCase(), value]));
}

/** Longest `traceparent` of the version there is (Trace Context, 3.2.2). */
const traceparentLength = 55;

/** Forgets what is not needed once a socket is authenticated: it may stay open for days. */
export function forgetHeaders(request: IncomingMessage): void {
  const { traceparent } = request.headers;
  const headers = typeof traceparent === 'string' && traceparent.length <= traceparentLength ? { traceparent } : {};
  Object.assign(request, { url: '/graphql', headers, rawHeaders: [] });
}
