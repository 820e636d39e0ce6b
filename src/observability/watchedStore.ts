import type { Surroundings } from '../Surroundings.js';
import { openStore, shownStore } from '../stores/openStore.js';
import type { Store } from '../stores/Store.js';
import { storeCause } from '../stores/StoreError.js';
import { Episode } from './Episode.js';

/** Opens the store of CACHE_URL, whose troubles and times the operator sees. Rejects as {@link openStore}. */
export async function openWatchedStore({ config, log, metrics }: Surroundings): Promise<Store> {
  const { cache, drainTimeoutMs } = config;
  const store = shownStore(cache.url);
  const episode = new Episode({
    ...{ log, level: 'error', about: { store }, quietMs: 0 },
    begins: 'store unavailable, continuing without it',
    ends: 'store available again',
  });
  return openStore(cache.url, {
    waitMs: drainTimeoutMs,
    onCommand: metrics.onStoreCommand,
    onDegraded: (error) => {
      metrics.storeDegraded.set(1);
      episode.see(error.trouble, storeCause(store, error));
    },
    onRecovered: () => {
      metrics.storeDegraded.set(0);
      episode.see(undefined);
    },
    onSetAside: (file) => {
      log.error({ file }, 'the file in the directory of CACHE_URL was damaged: what could be read of it is used');
    },
  });
}
