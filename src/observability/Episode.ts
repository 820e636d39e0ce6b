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
  /** Level of the first line. Default `warn`. */
  readonly level?: 'warn' | 'error';
  /** An episode ends with the first success this long after its last failure, in milliseconds. Default 5000. */
  readonly quietMs?: number;
}

/**
 * Logs one line when something begins to fail, with the cause of the first failure, and one when it works again, with the
 * duration and the number of failures. Each kind of trouble has an episode of its own.
 */
export class Episode {
  readonly #open = new Map<string, Open>();

  constructor(private readonly options: EpisodeOptions) {}

  /**
   * Notes a failure or, when `trouble` is undefined, a success. `trouble` is of a small set; `cause` is a short text without a
   * value, a name or an id.
   */
  see(trouble: string | undefined, cause = ''): void {
    const { log, about, begins, level = 'warn' } = this.options;
    const now = performance.now();
    const open = trouble && this.#open.get(trouble);
    if (trouble === undefined) this.#end(now);
    else if (open) {
      open.count += 1;
      open.latestAt = now;
    } else {
      this.#open.set(trouble, { begunAt: now, latestAt: now, cause, count: 1 });
      log[level]({ ...about, trouble, cause }, begins);
    }
  }

  #end(now: number): void {
    const { log, about, ends, quietMs = 5000 } = this.options;
    for (const [trouble, { begunAt, latestAt, cause, count }] of this.#open) {
      if (now - latestAt < quietMs) continue;
      this.#open.delete(trouble);
      log.info({ ...about, trouble, cause, durationMs: Math.round(now - begunAt), count }, ends);
    }
  }
}
