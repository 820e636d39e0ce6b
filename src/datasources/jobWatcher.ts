import { jitterOf } from './freshness.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import { isTerminal, type JobView, type RefreshJobs, sharedMs } from './RefreshJobs.js';
import { Watcher, type WatcherSurroundings } from './Watcher.js';

export interface JobWatcherOptions extends WatcherSurroundings {
  readonly jobs: RefreshJobs;
  /** Interval after a change, in milliseconds; it grows while nothing changes. */
  readonly pollMinMs: number;
  readonly pollMaxMs: number;
}

/** Watches the statuses of jobs: each pause is half as long again as the last while a status stays the same. */
export function jobWatcher({ jobs, pollMinMs, pollMaxMs, ...options }: JobWatcherOptions) {
  const { now } = options.runtime;
  const clamped = (ms: number) => Math.min(pollMaxMs, Math.max(pollMinMs, ms));
  return new Watcher<readonly [TaxpayerId, JobId], JobView>({
    ...options,
    watched: {
      held: (ids) => jobs.held(...ids),
      // Whatever is newer than what we know will do: another process may have polled in this interval.
      read: (ids, known, call) => jobs.status(...ids, known ? now() - known.observedAt : sharedMs, call),
      standIn: (_, known) => known,
      readAt: ({ observedAt }) => observedAt,
      isChange: (from, to) => from.job.status !== to.job.status,
      isFinal: ({ job }) => isTerminal(job),
      dueInMs({ observedAt, unchangedSince }) {
        // From the observation, so that it is the same in every process.
        const jitter = 0.9 + 0.2 * jitterOf(observedAt);
        const pauseMs = clamped((observedAt - unchangedSince) / 2) * jitter;
        // Never longer than the pause: the observation may bear the time of a machine whose clock is ahead.
        return Math.min(Math.max(observedAt + pauseMs - now(), 0), pauseMs);
      },
      retryInMs: (failures, askedMs) => Math.max(clamped(pollMinMs * 2 ** failures), askedMs),
    },
  });
}
