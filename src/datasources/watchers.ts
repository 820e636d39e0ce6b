import { isFinal, isSame, jitterOf } from './freshness.js';
import type { JobId, TaxpayerId } from './identifiers.js';
import { isTerminal, type JobView, type RefreshJobs, sharedMs } from './RefreshJobs.js';
import type { TokenBroker } from './TokenBroker.js';
import type { TokenView } from './tokenAnswer.js';
import { Watcher, type WatcherOptions } from './Watcher.js';

type Common = Omit<WatcherOptions<never, never>, 'watched'>;

export interface JobWatcherOptions extends Common {
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

export interface RecordWatcherOptions extends Common {
  readonly broker: TokenBroker;
}

/** Longest pause between two tries while reads fail, unless the failure asks for a longer one, in milliseconds. */
const retryMaxMs = 900_000;

/** Watches token records: each is read again when it stops being fresh, within the watchers' share of the budget. */
export function recordWatcher({ broker, ...options }: RecordWatcherOptions) {
  return new Watcher<TaxpayerId, TokenView>({
    ...options,
    watched: {
      held: (id) => broker.held(id),
      read: (id, _, call) => broker.poll(id, call),
      standIn: (id) => broker.stale(id),
      readAt: ({ fetchedAt }) => fetchedAt,
      isChange: (from, to) => from.stale !== to.stale || !isSame(from.record, to.record),
      isFinal: ({ record }) => isFinal(record),
      dueInMs: (view) => broker.freshForMs(view),
      // Spread, because all wait for the same moment when the budget is spent.
      retryInMs: (failures, askedMs) =>
        Math.max(Math.min(retryMaxMs, 1000 * 2 ** failures), askedMs) * (1 + options.runtime.random() / 10),
    },
  });
}
