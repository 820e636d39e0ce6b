import type { Logger } from './log.js';

interface Episode {
  readonly begunAt: number;
  readonly cause: string;
  count: number;
  /** The first success since the last failure. */
  worksSince: number | undefined;
  timer: NodeJS.Timeout | undefined;
}

export interface EpisodeOptions {
  readonly log: Logger;
  /** What the episodes are about, in both lines: `{ endpoint: 'taxpayerToken' }`. */
  readonly about: Readonly<Record<string, string>>;
  readonly begins: string;
  readonly ends: string;
  /** An episode ends after this time without a failure, from the first success on, in milliseconds. Default 5000. */
  readonly quietMs?: number;
}

/**
 * Logs one line when something begins to fail, with the cause of the first failure, and one when it works again, with the
 * duration and the number of failures. Each kind of trouble is an episode of its own.
 */
export class Episodes {
  readonly #open = new Map<string, Episode>();

  constructor(private readonly options: EpisodeOptions) {}

  /** Something failed. `trouble` is of a small set; `cause` is a short text without a value, a name or an id. */
  failed(trouble: string, cause: string): void {
    const { log, about, begins } = this.options;
    const open = this.#open.get(trouble);
    if (open !== undefined) {
      open.count += 1;
      open.worksSince = undefined;
      clearTimeout(open.timer);
      return;
    }
    const begunAt = performance.now();
    this.#open.set(trouble, { begunAt, cause, count: 1, worksSince: undefined, timer: undefined });
    log.warn({ ...about, trouble, cause }, begins);
  }

  /** Something worked. */
  worked(): void {
    for (const [trouble, open] of this.#open) {
      if (open.worksSince !== undefined) continue;
      open.worksSince = performance.now();
      open.timer = setTimeout(() => this.#end(trouble, open), this.options.quietMs ?? 5000).unref();
    }
  }

  /** Drops the open episodes without a line. */
  stop(): void {
    for (const { timer } of this.#open.values()) clearTimeout(timer);
    this.#open.clear();
  }

  #end(trouble: string, { begunAt, worksSince = begunAt, cause, count }: Episode): void {
    const { log, about, ends } = this.options;
    this.#open.delete(trouble);
    log.info({ ...about, trouble, cause, durationMs: Math.round(worksSince - begunAt), count }, ends);
  }
}
