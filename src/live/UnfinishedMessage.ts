import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Holder, Ledger, Release } from '../admission/Ledger.js';

export interface UnfinishedMessageOptions {
  readonly ledger: Ledger;
  readonly maxMessageBytes: number;
  /** A newcomer sent more than it may. */
  readonly onTooMuch: () => void;
  /** A caller may not hold so much. */
  readonly onNoRoom: (reason: string) => void;
}

/** What a newcomer may send in all, and a caller without its being counted, in bytes: a greeting with a long token. */
const freeBytes = 16_384;
/** Of a frame that a client sends, besides what is in it; of a control frame exactly, of others at least. */
const frameBytes = 6;

/** What came of a message that is not complete: a newcomer may send little; what a caller sends is counted in the ledger. */
export class UnfinishedMessage {
  readonly #options: UnfinishedMessageOptions;
  #caller: { readonly holder: Holder } | 'newcomer' = 'newcomer';
  #bytes = 0;
  #release: Release | undefined;

  constructor(socket: WebSocket, transport: Socket, options: UnfinishedMessageOptions) {
    this.#options = options;
    // First of all listeners: what is too much is not to be read as a message.
    transport.prependListener('data', ({ length }: Buffer) => this.#arrived(length));
    for (const control of ['ping', 'pong'] as const) {
      socket.on(control, ({ length }: Buffer) => this.#consumed(length + frameBytes));
    }
    socket.on('message', () => this.#consumed(this.#bytes));
    transport.once('close', () => this.#release?.());
  }

  /** The socket's caller is known. */
  acknowledge(holder: Holder): void {
    this.#caller = { holder };
    this.#bytes = 0;
  }

  #arrived(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= freeBytes || this.#release !== undefined) return;
    const { ledger, maxMessageBytes, onTooMuch, onNoRoom } = this.#options;
    const caller = this.#caller;
    const refusal = caller === 'newcomer' ? undefined : ledger.refusalOf('bytes', caller.holder, maxMessageBytes);
    if (caller === 'newcomer') onTooMuch();
    else if (refusal !== undefined) onNoRoom(refusal.message);
    else this.#release = ledger.take('bytes', caller.holder, maxMessageBytes);
  }

  #consumed(bytes: number): void {
    if (this.#caller === 'newcomer') return;
    this.#bytes -= bytes;
    if (this.#bytes > 0) return;
    this.#release?.();
    this.#release = undefined;
  }
}
