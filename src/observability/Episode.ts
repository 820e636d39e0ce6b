import type { Logger } from './log.js';

interface Open {
  readonly begunAt: number;
  readonly cause: string;
  latestAt: number;
  count: number;
}

export interface EpisodeOptions {
  readonly log: Logger;
  /** What the episodes are about, in both lines: `{ endpoint: 'taxpayerToken' }`. */
  readonly about?: Readonly<Record<string, string>>;
  readonly begins: string;
  readonly ends: string;
  /** An episode ends with the first success this long after its last failure, in milliseconds. Default 5000. */
  readonly quietMs?: number;
}

/**
 * Logs one line when something begins to fail, with the cause of the first failure, and one when it works again, with the
 * duration and the number of failures. Each kind of trouble is told apart.
 */
export class Episode {
  readonly #open = new Map<string, Open>();

  constructor(private readonly options: EpisodeOptions) {}

  /** Something failed. `trouble` is of a small set; `cause` is a short text without a value, a name or an id. */
  failed(trouble: string, cause: string): void {
    const { log, about, begins } = this.options;
    const now = performance.now();
    const open = this.#open.get(trouble);
    if (open === undefined) {
      this.#open.set(trouble, { begunAt: now, latestAt: now, cause, count: 1 });
      log.warn({ ...about, trouble, cause }, begins);
    } else {
      open.count += 1;
      open.latestAt = now;
    }
  }

  /** Something worked. */
  worked(): void {
    if (this.#open.size === 0) return;
    const { log, about, ends, quietMs = 5000 } = this.options;
    const now = performance.now();
    for (const [trouble, { begunAt, latestAt, cause, count }] of this.#open) {
      if (now - latestAt < quietMs) continue;
      this.#open.delete(trouble);
      log.info({ ...about, trouble, cause, durationMs: Math.round(now - begunAt), count }, ends);
    }
  }
}
