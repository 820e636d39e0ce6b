import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Holder, Places, Release } from '../admission/Places.js';

/** Number of checks within `stallMs`. With only one, a pause of this process would look like a stall of every peer. */
const looks = 4;

/**
 * Counts in the places the bytes that were written and that the peer has not taken yet. Destroys a connection when the
 * places has no room for more, or when the peer takes nothing for `stallMs`.
 */
export class Unread {
  readonly #connections = new WeakMap<Socket, UnreadConnection>();

  /** `stallMs`: how long a peer may take nothing while bytes wait for it. */
  constructor(
    private readonly places: Places,
    private readonly stallMs = 30_000,
  ) {}

  /** Counts bytes before they are written; returns what to call once they are taken. Undefined: the socket is destroyed. */
  hold(socket: Socket, holder: Holder, bytes: number): Release | undefined {
    if (this.places.refusalOf('bytes', holder, bytes) !== undefined) socket.destroy();
    if (socket.destroyed) return undefined;
    const connection = this.#connections.get(socket) ?? new UnreadConnection(socket, this.stallMs);
    this.#connections.set(socket, connection);
    return connection.keep(this.places.take('bytes', holder, bytes));
  }

  /** Counts the bytes of a written answer that the peer has not taken yet. */
  holdAnswer(response: ServerResponse, holder: Holder): void {
    const bytes = response.writableLength;
    const release = bytes === 0 ? undefined : this.hold(response.req.socket, holder, bytes);
    if (release !== undefined) response.once('finish', release);
  }
}

/** Watches a connection while bytes are unread. */
class UnreadConnection {
  readonly #kept = new Set<Release>();
  #timer: NodeJS.Timeout | undefined;
  #taken = 0;
  #idleLooks = 0;

  constructor(
    private readonly socket: Socket,
    private readonly stallMs: number,
  ) {
    socket.once('close', () => {
      clearInterval(this.#timer);
      for (const giveBack of this.#kept) giveBack();
    });
  }

  keep(giveBack: Release): Release {
    this.#kept.add(giveBack);
    if (this.#timer === undefined) {
      this.#idleLooks = 0;
      this.#taken = progressOf(this.socket).taken;
      this.#timer = setInterval(() => this.#look(), this.stallMs / looks).unref();
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
    const { taken, waiting } = progressOf(this.socket);
    this.#idleLooks = waiting > 0 && taken === this.#taken ? this.#idleLooks + 1 : 0;
    this.#taken = taken;
    if (this.#idleLooks >= looks) this.socket.destroy();
  }
}

interface Handle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
  /** The connection under TLS. */
  readonly _parent?: Handle;
}

/**
 * Bytes the peer has taken, and bytes still queued. Only the handle of the TCP connection knows them: `writableLength` and
 * the TLS handle count a write in full until its last byte is taken.
 */
function progressOf(socket: Socket): { readonly taken: number; readonly waiting: number } {
  const { _handle: handle } = socket as { _handle?: Handle | null };
  const { bytesWritten, writeQueueSize: waiting } = handle?._parent ?? handle ?? { bytesWritten: 0, writeQueueSize: 0 };
  return { taken: bytesWritten - waiting, waiting };
}
