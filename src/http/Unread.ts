import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Holder, Places, Release } from '../admission/Places.js';

/** Bytes for which a peer has the time that it has in any case once more: 50 kB a second. */
const bytesPerStall = 1_500_000;

/** Counts among the caller's places what was written and the peer has not taken yet, and ends a connection whose peer takes too long. */
export class Unread {
  /** `stallMs`: how long a peer may take for a short answer; for a long one in proportion. */
  constructor(
    private readonly places: Places,
    private readonly stallMs = 30_000,
  ) {}

  /**
   * Counts `bytes` that wait for the peer; returns what to call once they are taken. Ends the connection when there is no
   * room for them.
   */
  hold(socket: Socket, holder: Holder, bytes: number): Release | undefined {
    if (bytes === 0 || socket.destroyed) return undefined;
    if (this.places.refusalOf('bytes', holder, bytes) !== undefined) return void socket.destroy();
    const release = this.places.take('bytes', holder, bytes);
    const ahead = Math.max(bytes, socket.writableLength);
    // Not the socket's own timeout: a peer that takes nothing could put it off by sending.
    const timer = setTimeout(() => socket.destroy(), this.stallMs * (1 + ahead / bytesPerStall)).unref();
    const taken = () => {
      clearTimeout(timer);
      socket.off('close', taken);
      release();
    };
    socket.setMaxListeners(0).once('close', taken); // several answers may wait
    return taken;
  }

  /** Counts the bytes of a written answer that the peer has not taken yet. */
  holdAnswer(response: ServerResponse, holder: Holder): void {
    const taken = this.hold(response.req.socket, holder, response.writableLength);
    if (taken !== undefined) response.once('finish', taken);
  }
}
