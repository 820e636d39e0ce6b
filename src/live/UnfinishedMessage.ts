import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Holder, Ledger, Release } from '../admission/Ledger.js';
import { tooBig, tryAgainLater } from './closeCodes.js';

/** Bytes that a connection may send before it is authenticated, and after that without its being counted. */
const freeBytes = 16_384;
/** Bytes of a client's frame besides its content; of a control frame exactly, of others at least. */
const frameBytes = 6;

/** Bytes received of a message that is not complete. Few are allowed before authentication; afterwards the ledger counts them. */
export class UnfinishedMessage {
  #isAuthenticated = false;
  #holder: Holder;
  #bytes = 0;
  #release: Release | undefined;

  constructor(
    private readonly socket: WebSocket,
    transport: Socket,
    private readonly ledger: Ledger,
    private readonly maxMessageBytes: number,
    private readonly close: (code: number, reason: string) => void,
  ) {
    // Before all other listeners: what is too much must not be read as a message.
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
    const { ledger, maxMessageBytes, close } = this;
    const refusal = this.#isAuthenticated && ledger.refusalOf('bytes', this.#holder, maxMessageBytes);
    if (refusal === false) {
      this.socket.pause();
      close(tooBig, 'Too much before connection_ack');
    } else if (refusal !== undefined) close(tryAgainLater, refusal.message);
    else this.#release = ledger.take('bytes', this.#holder, maxMessageBytes);
  }

  #consumed(bytes: number): void {
    if (!this.#isAuthenticated) return;
    this.#bytes -= bytes;
    if (this.#bytes > 0) return;
    this.#release?.();
    this.#release = undefined;
  }
}
