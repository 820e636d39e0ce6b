import type { Config } from '../config/config.js';
import { digestOf, isFinal } from './freshness.js';
import type { TaxpayerId } from './identifiers.js';
import { idsOf, isFinalJob, type JobView, type RefreshJobs } from './RefreshJobs.js';
import type { TokenBroker } from './TokenBroker.js';
import type { TokenView } from './tokenAnswer.js';
import { Watcher, type WatcherOptions } from './Watcher.js';

/** Watches token records: each is read again when it stops being fresh, within the watchers' share of the budget. */
export function recordWatcher(broker: TokenBroker, options: WatcherOptions) {
  return new Watcher<TokenView>(
    {
      read: (id, _, call) => broker.poll(id as TaxpayerId, call),
      taxpayerIn: (id) => id,
      known: (id, isFailing) => broker.known(id as TaxpayerId, isFailing),
      newsOf: ({ value, stale }) => (stale ? 'stale' : digestOf(value.record)),
      isFinal: ({ value }) => isFinal(value.record),
      intervalMs: (view) => broker.freshMs(view),
      retryMs: { first: 1000, longest: 900_000 },
    },
    options,
  );
}

type JobWatcherOptions = WatcherOptions & Pick<Config, 'JOB_POLL_MIN_MS' | 'JOB_POLL_MAX_MS'>;

/** Watches the statuses of jobs. While a status stays the same, each poll interval is 1.5 times the last. */
export function jobWatcher(jobs: RefreshJobs, options: JobWatcherOptions) {
  const { JOB_POLL_MIN_MS, JOB_POLL_MAX_MS } = options;
  return new Watcher<JobView>(
    {
      // Any status read later will do: another process may have polled in this interval.
      read: (id, knownAt, call) => jobs.status(...idsOf(id), call, knownAt && performance.now() - knownAt),
      taxpayerIn: (id) => idsOf(id)[0],
      known: (id) => jobs.cache.peek(id),
      newsOf: ({ value }) => value.job.status,
      isFinal: ({ value }) => isFinalJob(value.job),
      intervalMs({ value: { unchangedForMs }, version }) {
        // Derived from the observation, so that the jitter is the same in every process.
        const jitter = 0.9 + 0.2 * jitterOf(version);
        return Math.min(JOB_POLL_MAX_MS, Math.max(JOB_POLL_MIN_MS, unchangedForMs / 2)) * jitter;
      },
      retryMs: { first: JOB_POLL_MIN_MS, longest: JOB_POLL_MAX_MS },
    },
    options,
  );
}

/** A number from 0 to 1 that differs from version to version. */
const jitterOf = (version: string): number => Number.parseInt(version.slice(0, 8), 16) / 2 ** 32;
