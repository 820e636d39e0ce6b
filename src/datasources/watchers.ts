import { digestOf, isFinal } from './freshness.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import { isFinalJob, type JobView, type RefreshJobs } from './RefreshJobs.js';
import type { TokenBroker } from './TokenBroker.js';
import type { TokenView } from './tokenAnswer.js';
import { Watcher, type WatcherOptions } from './Watcher.js';

/** Watches token records: each is read again when it stops being fresh, within the watchers' share of the budget. */
export function recordWatcher(broker: TokenBroker, options: WatcherOptions) {
  return new Watcher<TaxpayerId, TokenView>(
    {
      read: (id, _, call) => broker.poll(id, call),
      known: (id, isFailing) => broker.known(id, isFailing),
      newsOf: ({ value, stale }) => (stale ? 'stale' : digestOf(value.record)),
      isFinal: ({ value }) => isFinal(value.record),
      intervalMs: (view) => broker.freshMs(view),
      retryMs: { first: 1000, longest: 900_000 },
    },
    options,
  );
}

interface JobWatcherOptions extends WatcherOptions {
  /** The interval after a change, in milliseconds, which grows while nothing changes up to `pollMaxMs`. */
  readonly pollMinMs: number;
  readonly pollMaxMs: number;
}

/** Watches the statuses of jobs. While a status stays the same, each poll interval is 1.5 times the last. */
export function jobWatcher(jobs: RefreshJobs, { pollMinMs, pollMaxMs, ...options }: JobWatcherOptions) {
  return new Watcher<readonly [TaxpayerId, JobId], JobView>(
    {
      // Any status read later will do: another process may have polled in this interval.
      read: (ids, knownAt, call) => jobs.status(...ids, call, knownAt && performance.now() - knownAt),
      known: (ids) => jobs.known(...ids),
      newsOf: ({ value }) => value.job.status,
      isFinal: ({ value }) => isFinalJob(value.job),
      intervalMs({ value: { unchangedForMs }, version }) {
        // Derived from the observation, so that the jitter is the same in every process.
        const jitter = 0.9 + 0.2 * jitterOf(version);
        return Math.min(pollMaxMs, Math.max(pollMinMs, unchangedForMs / 2)) * jitter;
      },
      retryMs: { first: pollMinMs, longest: pollMaxMs },
    },
    options,
  );
}

/** A number from 0 to 1 that differs from version to version. */
const jitterOf = (version: string): number => Number.parseInt(version.slice(0, 8), 16) / 2 ** 32;
