import { setTimeout as delay } from 'node:timers/promises';
import type { LiveTransport } from '../operations/observeOperations.js';

/** One socket or response that stays open. */
export interface OpenStream {
  /** Finishes what was asked and closes, telling the reason. */
  readonly shutDown: () => void;
  /** Closes at once. */
  readonly destroy: () => void;
}

/** Everything that stays open: counted, and closed together when the process drains. */
export class OpenStreams {
  readonly #onChange: (transport: LiveTransport, change: 1 | -1) => void;
  readonly #open = new Set<OpenStream>();
  #draining = false;
  #emptied = () => {};

  constructor(onChange: (transport: LiveTransport, change: 1 | -1) => void) {
    this.#onChange = onChange;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Counts a stream in; returns what counts it out, which may be called more than once. */
  add(transport: LiveTransport, stream: OpenStream): () => void {
    this.#open.add(stream);
    this.#onChange(transport, 1);
    return () => {
      if (!this.#open.delete(stream)) return;
      this.#onChange(transport, -1);
      if (this.#open.size === 0) this.#emptied();
    };
  }

  /** Lets nobody in any more, has every stream close, and resolves when all have or `timeoutMs` are over. */
  async drain(timeoutMs: number): Promise<void> {
    this.#draining = true;
    if (this.#open.size === 0) return;
    const emptied = new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    for (const stream of [...this.#open]) stream.shutDown();
    await Promise.race([emptied, delay(timeoutMs, undefined, { ref: false })]);
    for (const stream of [...this.#open]) stream.destroy();
  }
}
