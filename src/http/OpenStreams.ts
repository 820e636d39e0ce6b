import type { LiveTransport } from '../operations/Operation.js';

/** All open sockets and streams: counted, and told when the process drains. */
export class OpenStreams {
  readonly #open = new Set<() => void>();
  #draining = false;

  constructor(private readonly onChange: (transport: LiveTransport, change: 1 | -1) => void) {}

  get draining(): boolean {
    return this.#draining;
  }

  /**
   * Adds a stream; returns a function that removes it, which may be called more than once. `shutDown` closes it with a reason,
   * after finishing queries and mutations.
   */
  add(transport: LiveTransport, shutDown: () => void): () => void {
    this.#open.add(shutDown);
    this.onChange(transport, 1);
    return () => {
      if (this.#open.delete(shutDown)) this.onChange(transport, -1);
    };
  }

  /** Shuts every stream down. Those that take too long end with their connections. */
  shutDown(): void {
    this.#draining = true;
    for (const shutDown of [...this.#open]) shutDown();
  }
}
