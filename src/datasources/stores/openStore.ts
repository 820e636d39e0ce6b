import { FallbackStore, type FallbackStoreOptions } from './FallbackStore.js';
import { MemoryStore } from './MemoryStore.js';
import type { Store } from './Store.js';
import { StoreError } from './StoreError.js';

export interface OpenStoreOptions extends FallbackStoreOptions {
  /** What every key in Redis begins with. Default `txgw:`. */
  readonly keyPrefix?: string;
  /** Entries a `memory:` store holds. Default 100,000. */
  readonly memoryEntries?: number;
}

/** A store, and whether it currently answers from this process alone. */
export type OpenedStore = Store & { readonly degraded: boolean };

/**
 * Opens the store that `CACHE_URL` names, loading only the driver it needs. A Redis that is down is no error: the store
 * starts degraded and returns by itself. Rejects with a `misconfigured` {@link StoreError}, fit to be shown, when the URL
 * is wrong or the directory cannot be opened.
 */
export async function openStore(cacheUrl: string, options: OpenStoreOptions = {}): Promise<OpenedStore> {
  if (cacheUrl === 'memory:') {
    const { memoryEntries, now } = options;
    return new MemoryStore({ ...(memoryEntries && { maxEntries: memoryEntries }), ...(now && { now }) });
  }
  const store = new FallbackStore(await openShared(cacheUrl, options), options);
  await store.start();
  return store;
}

async function openShared(cacheUrl: string, { keyPrefix }: OpenStoreOptions): Promise<Store> {
  if (/^lmdb:./.test(cacheUrl)) {
    const { LmdbStore } = await import('./LmdbStore.js');
    return LmdbStore.open(cacheUrl.slice('lmdb:'.length));
  }
  if (/^rediss?(\+sentinel|\+cluster)?:\/\//.test(cacheUrl)) {
    const { RedisStore } = await import('./RedisStore.js');
    return RedisStore.open(cacheUrl, keyPrefix === undefined ? {} : { keyPrefix });
  }
  throw new StoreError('misconfigured', 'CACHE_URL must begin with memory:, lmdb: or one of the redis forms');
}
