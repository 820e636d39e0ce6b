import type { Config } from '../config/config.js';
import { openStore, shownStore } from '../stores/openStore.js';
import type { Store } from '../stores/Store.js';
import { storeCause } from '../stores/StoreError.js';
import type { Watching } from './watchedDecisionPoint.js';

/** Opens the store of CACHE_URL, whose troubles the operator sees. Rejects as {@link openStore}. */
export function openWatchedStore({ cache, drainTimeoutMs }: Config, { log, metrics }: Watching): Promise<Store> {
  const store = shownStore(cache.url);
  return openStore(cache.url, {
    waitMs: drainTimeoutMs,
    onDegraded: (error) => {
      metrics.storeDegraded.set(1);
      const cause = storeCause(store, error);
      const { trouble } = error;
      log.error({ store, trouble, cause }, 'the store of CACHE_URL cannot be used: this process goes on by itself');
    },
    onRecovered: (durationMs) => {
      metrics.storeDegraded.set(0);
      log.info({ store, durationMs: Math.round(durationMs) }, 'the store of CACHE_URL is used again');
    },
    onSetAside: (file) => {
      metrics.storeSetAside.inc();
      log.error({ file }, 'the file in the directory of CACHE_URL was damaged: what could be read of it is used');
    },
  });
}
