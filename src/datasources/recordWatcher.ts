import { isFinal, isSame } from './freshness.js';
import type { TaxpayerId } from './identifiers.js';
import type { TokenBroker } from './TokenBroker.js';
import type { TokenView } from './tokenAnswer.js';
import { Watcher, type WatcherSurroundings } from './Watcher.js';

/** Watches token records: each is read again when it stops being fresh, within the watchers' share of the budget. */
export function recordWatcher({ broker, ...options }: WatcherSurroundings & { readonly broker: TokenBroker }) {
  return new Watcher<TaxpayerId, TokenView>({
    ...options,
    watched: {
      read: (id, _, call) => broker.poll(id, call),
      standIn: (id) => broker.stale(id),
      readAt: ({ readAt }) => readAt,
      isChange: (from, to) => from.stale !== to.stale || !isSame(from.record, to.record),
      isFinal: ({ record }) => isFinal(record),
      dueInMs: (view) => broker.freshForMs(view),
      retryMs: { first: 1000, longest: 900_000 },
    },
  });
}
