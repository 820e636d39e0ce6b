import type { LiveTransport } from '../operations/Operation.js';
import { pause } from '../process/pause.js';

/** How to close one socket or response: after finishing queries and mutations, with a reason; or at once. */
interface OpenStream {
  readonly shutDown: () => void;
  readonly destroy: () => void;
}

/** All open sockets and streams: counted, and closed together when the process drains. */
export class OpenStreams {
  readonly #open = new Set<OpenStream>();
  #draining = false;
  #emptied = () => {};

  constructor(private readonly onChange: (transport: LiveTransport, change: 1 | -1) => void) {}

  get draining(): boolean {
    return this.#draining;
  }

  /** Adds a stream; returns a function that removes it, which may be called more than once. */
  add(transport: LiveTransport, stream: OpenStream): () => void {
    this.#open.add(stream);
    this.onChange(transport, 1);
    return () => {
      if (!this.#open.delete(stream)) return;
      this.onChange(transport, -1);
      if (this.#open.size === 0) this.#emptied();
    };
  }

  /** Closes every stream, and resolves when all are closed; destroys those still open after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    this.#draining = true;
    if (this.#open.size === 0) return;
    const emptied = new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    for (const stream of [...this.#open]) stream.shutDown();
    await Promise.race([emptied, pause(timeoutMs, { ref: false })]);
    for (const stream of [...this.#open]) stream.destroy();
  }
}
