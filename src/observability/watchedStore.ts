import { type OpenedStore, openStore, shownStore } from '../stores/openStore.js';
import { storeCause } from '../stores/StoreError.js';
import type { Watching } from './watchedDecisionPoint.js';

/** Opens the store of CACHE_URL, whose troubles the operator sees. Rejects as {@link openStore}. */
export function openWatchedStore(url: string, { log, metrics }: Watching): Promise<OpenedStore> {
  const store = shownStore(url);
  const kind = store.startsWith('lmdb:') ? 'lmdb' : 'redis';
  return openStore(url, {
    onDegraded: (trouble, detail) => {
      metrics.storeDegraded.set(1);
      const cause = storeCause(kind, trouble, detail);
      log.error({ store, trouble, cause }, 'the store of CACHE_URL cannot be used: this process goes on by itself');
    },
    onRecovered: (durationMs, count) => {
      metrics.storeDegraded.set(0);
      log.info({ store, durationMs: Math.round(durationMs), count }, 'the store of CACHE_URL is used again');
    },
    onSetAside: (file) => {
      metrics.storeSetAside.inc();
      log.error({ file }, 'the database in the directory of CACHE_URL was damaged: it is renamed and a new one begun');
    },
  });
}
