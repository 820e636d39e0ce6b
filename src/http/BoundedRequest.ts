import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Most requests of one connection that wait for their answers: few clients send a request before the last is answered, and an
 * attacker could send thousands in one packet.
 */
const mostPipelined = 4;
const unanswered = new WeakMap<Socket, number>();
export const unansweredOf = (socket: Socket): number => unanswered.get(socket) ?? 0;

/**
 * Most pieces that a body may come in if they have fewer than {@link tinyBytes} bytes on average: Node.js takes hundreds of
 * bytes and a microsecond for each.
 */
const mostTinyPieces = 400;
const tinyBytes = 64;

/**
 * A request with limits that apply before any of our code sees it: on how many requests wait on its connection, and on the
 * pieces of its body.
 *
 * Node.js reads `upgrade` once it has the headers. If it is true, Node.js parses nothing more and emits `upgrade` with the
 * connection. It is true for a WebSocket. A request that offers another upgrade, such as Java's `Upgrade: h2c`, is served as if
 * it offered none (RFC 9110, 7.8). It is also true for one request too many on a connection, because nothing else stops the
 * parser; `HttpServer` then ends the connection.
 */
export class BoundedRequest extends IncomingMessage {
  /** What the parser of Node.js found. Not a `#private` member: the base constructor calls the setter before those exist. */
  declare offersUpgrade: boolean | null;
  /** Decided when `upgrade` is first read: when Node.js reads it again, the request itself counts as unanswered. */
  declare isTooMany: boolean | undefined;
  /** How many pieces of the body came so far, and how many bytes. */
  pieces = 0;
  received = 0;

  set upgrade(offered: boolean | null) {
    this.offersUpgrade = offered;
  }

  get upgrade(): boolean {
    this.isTooMany ??= this.#isOneTooMany();
    return this.isTooMany || (this.offersUpgrade === true && isForWebSocket(this));
  }

  #isOneTooMany(): boolean {
    const count = unansweredOf(this.socket);
    // Node.js refuses a request without Host itself, and tells nobody. Nothing may follow it: many fit into one packet.
    if (this.httpVersion === '1.1' && this.headers.host === undefined) unanswered.set(this.socket, mostPipelined);
    return count >= mostPipelined || this.socket.destroyed;
  }

  /** Takes a piece of the body; null at its end. Ends a connection whose body comes in very many tiny pieces. */
  override push(piece: Buffer | null): boolean {
    this.pieces += 1;
    this.received += piece?.length ?? 0;
    if (this.pieces <= mostTinyPieces || this.received >= tinyBytes * this.pieces) return super.push(piece);
    this.socket.destroy();
    return false; // keeps none of those that the parser has read already
  }
}

/** Counts a request as unanswered until its response is closed. */
export function countUnanswered({ socket }: IncomingMessage, response: ServerResponse): void {
  unanswered.set(socket, unansweredOf(socket) + 1);
  response.once('close', () => unanswered.set(socket, unansweredOf(socket) - 1));
}

/** Whether a request asks for a WebSocket on its path. */
export function isForWebSocket({ headers, url = '' }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' && /^\/graphql(\?|$)/.test(pathAndQueryOf(url));
}

/** The path and query of a request target. A proxy may send an absolute address (RFC 9112, 3.2.2); its host is ignored. */
export function pathAndQueryOf(target: string): string {
  return target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*\/?/i, '/');
}

/** Most headers of a request: each takes several times its bytes, even before all have come. Older Node.js ignores further ones. */
export const maxHeaders = 200;

/** Most bytes of an unread body that Node.js may read and discard, to keep the connection for the next request. */
const maxDroppedBytes = 65_536;

/**
 * Whether a long body is unread. Node.js would read it to its end before the next request, which only a short body is worth. If
 * Node.js has ignored headers, the one that tells the length may be among them.
 */
export function leavesMuchUnread({ complete, headers, rawHeaders }: IncomingMessage): boolean {
  if (complete) return false;
  if (rawHeaders.length >= 2 * maxHeaders) return true;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxDroppedBytes;
}

/** How long the connection stays open after an answer that was sent before the end of a body, in milliseconds. */
const lingerMs = 500;

/**
 * Reads no more of a body, and closes its connection a moment after the answer. Closing at once, with bytes unread, would reset
 * the connection: a client that is still writing would get an error in place of the answer.
 */
export function stopReading(request: IncomingMessage): void {
  request.read(); // otherwise Node.js would read the body to its end, to discard it
  request.socket.destroySoon = function closeLater(this: Socket) {
    this.end(() => setTimeout(() => this.destroy(), lingerMs).unref());
  };
}
