import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Holder, Ledger, Release } from '../admission/Ledger.js';

/** Looks at a connection within `stallMs`: a process that stood still looks once and ends nobody for it. */
const looks = 4;

/**
 * What was written and not taken by its reader: counted in the ledger and never kept for long. A connection is destroyed
 * when there is no room for what is written to it, and when its peer takes nothing for `stallMs`.
 */
export class Unread {
  readonly #ledger: Ledger;
  readonly #stallMs: number;
  readonly #connections = new WeakMap<Socket, UnreadConnection>();

  /** `stallMs`: how long a peer may take no byte of what waits for it. */
  constructor(ledger: Ledger, stallMs = 30_000) {
    this.#ledger = ledger;
    this.#stallMs = stallMs;
  }

  /**
   * Counts bytes that are to be written to `socket`; returns what to call once the system has taken them. Undefined when
   * there was no room: the connection is destroyed.
   */
  hold(socket: Socket, holder: Holder, bytes: number): Release | undefined {
    if (this.#ledger.refusalOf('bytes', holder, bytes) !== undefined) socket.destroy();
    if (socket.destroyed) return undefined;
    const connection = this.#connections.get(socket) ?? new UnreadConnection(socket, this.#stallMs);
    this.#connections.set(socket, connection);
    return connection.keep(this.#ledger.take('bytes', holder, bytes));
  }

  /** To be called when the whole answer is written: holds what its reader has not taken of it. */
  holdAnswer(response: ServerResponse, holder: Holder): void {
    const bytes = response.writableLength;
    const release = bytes === 0 ? undefined : this.hold(response.req.socket, holder, bytes);
    if (release !== undefined) response.once('finish', release);
  }
}

/** Watches a connection for as long as anything of it is unread. */
class UnreadConnection {
  readonly #socket: Socket;
  readonly #stallMs: number;
  readonly #kept = new Set<Release>();
  #timer: NodeJS.Timeout | undefined;
  #taken = 0;
  #idleLooks = 0;

  constructor(socket: Socket, stallMs: number) {
    this.#socket = socket;
    this.#stallMs = stallMs;
    socket.once('close', () => {
      clearInterval(this.#timer);
      for (const giveBack of this.#kept) giveBack();
    });
  }

  keep(giveBack: Release): Release {
    this.#kept.add(giveBack);
    if (this.#timer === undefined) {
      this.#idleLooks = 0;
      this.#taken = progressOf(this.#socket).taken;
      this.#timer = setInterval(() => this.#look(), this.#stallMs / looks).unref();
    }
    return () => {
      giveBack();
      this.#kept.delete(giveBack);
      if (this.#kept.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  #look(): void {
    const { taken, waiting } = progressOf(this.#socket);
    this.#idleLooks = waiting > 0 && taken === this.#taken ? this.#idleLooks + 1 : 0;
    this.#taken = taken;
    if (this.#idleLooks >= looks) this.#socket.destroy();
  }
}

/**
 * Bytes that the peer has taken, and those given to the system that wait for it. Node.js knows them by its handle alone:
 * `writableLength` counts a write until the last of its bytes is taken, and `setTimeout` begins again with whatever the
 * peer sends.
 */
function progressOf(socket: Socket): { readonly taken: number; readonly waiting: number } {
  const { _handle: handle } = socket as { _handle?: { bytesWritten: number; writeQueueSize: number } | null };
  const { bytesWritten, writeQueueSize: waiting } = handle ?? { bytesWritten: 0, writeQueueSize: 0 };
  return { taken: bytesWritten - waiting, waiting };
}
