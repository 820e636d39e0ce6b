import type { Logger } from './log.js';

interface Episode {
  readonly begunAt: number;
  readonly cause: string;
  latestAt: number;
  count: number;
}

interface EpisodesOptions {
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
 * Takes a failure or, when `trouble` is undefined, a success. `trouble` is of a small set; `cause` is a short text without a
 * value, a name or an id.
 */
export type Report = (trouble: string | undefined, cause?: string) => void;

/**
 * Logs one line when something begins to fail, with the cause of the first failure, and one when it works again, with the
 * duration and the number of failures. Each kind of trouble has an episode of its own.
 */
export function episodes({ log, about, begins, ends, level = 'warn', quietMs = 5000 }: EpisodesOptions): Report {
  const open = new Map<string, Episode>();

  const endQuiet = (now: number) => {
    for (const [trouble, { begunAt, latestAt, cause, count }] of open) {
      if (now - latestAt < quietMs) continue;
      open.delete(trouble);
      log.info({ ...about, trouble, cause, durationMs: Math.round(now - begunAt), count }, ends);
    }
  };

  return (trouble, cause = '') => {
    const now = performance.now();
    if (trouble === undefined) return endQuiet(now);
    const episode = open.get(trouble);
    if (episode) {
      episode.count += 1;
      episode.latestAt = now;
    } else {
      open.set(trouble, { begunAt: now, latestAt: now, cause, count: 1 });
      log[level]({ ...about, trouble, cause }, begins);
    }
  };
}
