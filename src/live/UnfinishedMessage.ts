import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Holder, Places, Release } from '../admission/Places.js';
import { tooBig, tryAgainLater } from './closeCodes.js';

/** Most bytes that a connection may send before it is authenticated; afterwards, most that the places does not count. */
const freeBytes = 16_384;
/** Header bytes of a client's frame: exactly so many for a control frame, at least for others. */
const frameBytes = 6;

/** Counts the bytes of an incomplete message. Few are allowed before authentication; afterwards the places counts them. */
export class UnfinishedMessage {
  #isAuthenticated = false;
  #holder: Holder;
  #bytes = 0;
  #release: Release | undefined;

  constructor(
    private readonly socket: WebSocket,
    transport: Socket,
    private readonly places: Places,
    private readonly maxMessageBytes: number,
    private readonly close: (code: number, reason: string) => void,
  ) {
    // Runs before all other listeners: bytes beyond the limit must not be read as a message.
    transport.prependListener('data', ({ length }: Buffer) => this.#arrived(length));
    for (const control of ['ping', 'pong'] as const) {
      socket.on(control, ({ length }: Buffer) => this.#consumed(length + frameBytes));
    }
    socket.on('message', () => this.#consumed(this.#bytes));
    transport.once('close', () => this.#release?.());
  }

  authenticate(holder: Holder): void {
    this.#isAuthenticated = true;
    this.#holder = holder;
    this.#bytes = 0;
  }

  #arrived(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= freeBytes || this.#release !== undefined) return;
    if (this.#isAuthenticated) this.#count();
    else {
      this.socket.pause();
      this.close(tooBig, 'Too much before connection_ack');
    }
  }

  /** Counts a message of the greatest size, or closes the socket when the places has no room for one. */
  #count(): void {
    const { places, maxMessageBytes } = this;
    const refusal = places.refusalOf('bytes', this.#holder, maxMessageBytes);
    if (refusal === undefined) this.#release = places.take('bytes', this.#holder, maxMessageBytes);
    else this.close(tryAgainLater, refusal.message);
  }

  #consumed(bytes: number): void {
    if (!this.#isAuthenticated) return;
    this.#bytes -= bytes;
    if (this.#bytes > 0) return;
    this.#release?.();
    this.#release = undefined;
  }
}
