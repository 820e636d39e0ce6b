import { setTimeout as delay } from 'node:timers/promises';
import type { LiveTransport } from '../operations/observeOperations.js';

/** One socket or response that stays open. */
export interface OpenStream {
  /** Finishes what was asked and closes, telling the reason. */
  readonly shutDown: () => void;
  /** Closes at once. */
  readonly destroy: () => void;
}

export interface OpenStreamsOptions {
  readonly onCount: (transport: LiveTransport, count: number) => void;
}

/** Everything that stays open: counted, and closed together when the process drains. */
export class OpenStreams {
  readonly #options: OpenStreamsOptions;
  readonly #open = new Map<OpenStream, LiveTransport>();
  readonly #counts = new Map<LiveTransport, number>();
  #draining = false;
  #emptied: (() => void) | undefined;

  constructor(options: OpenStreamsOptions) {
    this.#options = options;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Counts a stream in; returns what counts it out, which may be called more than once. */
  add(transport: LiveTransport, stream: OpenStream): () => void {
    this.#open.set(stream, transport);
    this.#count(transport, 1);
    return () => {
      if (!this.#open.delete(stream)) return;
      this.#count(transport, -1);
      if (this.#open.size === 0) this.#emptied?.();
    };
  }

  /** Lets nobody in any more, has every stream close, and resolves when all have or `timeoutMs` are over. */
  async drain(timeoutMs: number): Promise<void> {
    this.#draining = true;
    if (this.#open.size === 0) return;
    const emptied = new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    for (const stream of [...this.#open.keys()]) stream.shutDown();
    const limit = new AbortController();
    const timeUp = delay(timeoutMs, undefined, { signal: limit.signal }).catch(() => {});
    await Promise.race([emptied, timeUp]);
    limit.abort();
    for (const stream of [...this.#open.keys()]) stream.destroy();
  }

  #count(transport: LiveTransport, change: 1 | -1): void {
    const count = (this.#counts.get(transport) ?? 0) + change;
    this.#counts.set(transport, count);
    this.#options.onCount(transport, count);
  }
}
