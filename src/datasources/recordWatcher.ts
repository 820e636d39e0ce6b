import { isFinal, isSame } from './freshness.js';
import type { TaxpayerId } from './identifiers.js';
import type { TokenBroker } from './TokenBroker.js';
import type { TokenView } from './tokenAnswer.js';
import { Watcher, type WatcherSurroundings } from './Watcher.js';

export interface RecordWatcherOptions extends WatcherSurroundings {
  readonly broker: TokenBroker;
}

/** Longest backoff while reads fail, unless an error asks for more, in milliseconds. */
const retryMaxMs = 900_000;

/** Watches token records: each is read again when it stops being fresh, within the watchers' share of the budget. */
export function recordWatcher({ broker, ...options }: RecordWatcherOptions) {
  return new Watcher<TaxpayerId, TokenView>({
    ...options,
    watched: {
      held: (id) => broker.held(id),
      read: (id, _, call) => broker.poll(id, call),
      standIn: (id) => broker.stale(id),
      readAt: ({ readAt }) => readAt,
      isChange: (from, to) => from.stale !== to.stale || !isSame(from.record, to.record),
      isFinal: ({ record }) => isFinal(record),
      dueInMs: (view) => broker.freshForMs(view),
      // With jitter, because all watchers wait for the same moment when the budget is spent.
      retryInMs: (failures, askedMs) =>
        Math.max(Math.min(retryMaxMs, 1000 * 2 ** failures), askedMs) * (1 + Math.random() / 10),
    },
  });
}
