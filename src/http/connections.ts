import { IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * A request that may become a WebSocket. One that offers another upgrade, such as Java's `Upgrade: h2c`, is served as if it
 * did not (RFC 9110, 7.8), and so is one behind a request that is not answered yet: Node.js reads `upgrade` once it has the
 * headers, and hands the connection over if it is true.
 */
export class UpgradableRequest extends IncomingMessage {
  /** As the parser found it. No `#private` member: the setter runs in the constructor of Node.js. */
  declare offersUpgrade: boolean | null;

  set upgrade(offered: boolean | null) {
    this.offersUpgrade = offered;
  }

  get upgrade(): boolean {
    if (!this.offersUpgrade || this.headers.upgrade?.toLowerCase() !== 'websocket') return false;
    // The answer to an earlier request. It is private, but nothing else tells of it.
    const { _httpMessage: earlier } = this.socket as { _httpMessage?: ServerResponse | null };
    return !earlier && /^\/graphql(\?|$)/.test(pathAndQueryOf(this.url ?? ''));
  }
}

/** The path and query of a request target. A proxy may send an absolute address (RFC 9112, 3.2.2); its host is ignored. */
export function pathAndQueryOf(target: string): string {
  if (target.startsWith('/')) return target;
  const rest = target.replace(/^https?:\/\/[^/?#]*/i, '');
  return rest.startsWith('/') || rest === target ? rest : `/${rest}`;
}

/** Most bytes of an unread body that Node.js may read and discard, to keep the connection for the next request. */
const maxDroppedBytes = 65_536;

/** Whether a long body is unread. Before the next request Node.js would read it to its end, as it may with a short one. */
export function leavesMuchUnread({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxDroppedBytes;
}

/** How long the connection stays open after an answer that came before the end of a body, in milliseconds. */
const lingerMs = 500;

/**
 * Reads no more of a body, and closes its connection a moment after the answer: closed with bytes unread it is reset, and a
 * client that still writes gets an error in place of the answer.
 */
export function stopReading(request: IncomingMessage): void {
  request.read(); // Node.js discards the rest of a body of which nothing was read
  request.socket.destroySoon = function closeLater(this: Socket) {
    this.end(() => setTimeout(() => this.destroy(), lingerMs).unref());
  };
}
