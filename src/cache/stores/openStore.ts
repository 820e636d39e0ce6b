import { resolve } from 'node:path';
import { FallbackStore, type FallbackStoreOptions } from './FallbackStore.js';
import { makeLmdbDirectory, unusable } from './lmdbDirectory.js';
import { MemoryStore } from './MemoryStore.js';
import type { Store } from './Store.js';
import { StoreError } from './StoreError.js';

/**
 * Longest wait for one operation, in milliseconds. LMDB is waited for longer, because its writes stand still while the disk
 * is busy, and each process that goes on by itself asks the service again. The wait for a lease and the one for the value
 * written under it have to fit into what a lease outlives its work by (`leaseMarginMs`).
 */
const limitMs = { memory: 250, redis: 250, lmdb: 1000 };

export interface OpenStoreOptions extends FallbackStoreOptions {
  /** The database on disk was damaged; it was renamed to `name`, in the same directory. */
  readonly onSetAside?: (name: string) => void;
}

const lmdbScheme = 'lmdb:';

/** A store, and whether it currently answers from this process alone. */
export type OpenedStore = Store & { readonly degraded: boolean };

/**
 * Opens the store that `CACHE_URL` names, loading only the driver it needs. A Redis that is down is no error: the store
 * starts degraded and returns by itself. Nor is a damaged LMDB database: it is renamed, and the store begins anew. Rejects
 * with a `misconfigured` {@link StoreError}, fit to be shown, when the URL is wrong or the directory cannot be opened.
 */
export async function openStore(cacheUrl: string, options: OpenStoreOptions = {}): Promise<OpenedStore> {
  if (cacheUrl === 'memory:') {
    return new MemoryStore(options.now && { now: options.now });
  }
  const primary = await openShared(cacheUrl, options);
  const store = new FallbackStore(primary, { limitMs: limitMs[primary.kind], ...options });
  await store.start();
  return store;
}

/**
 * Makes what the store of `CACHE_URL` needs on this machine, before several processes open it: one that cannot be used is then
 * told once. Throws a `misconfigured` {@link StoreError}, fit to be shown.
 */
export function prepareStore(cacheUrl: string): void {
  if (!cacheUrl.startsWith(lmdbScheme)) return;
  try {
    makeLmdbDirectory(resolve(cacheUrl.slice(lmdbScheme.length)));
  } catch (error) {
    throw unusable(error);
  }
}

async function openShared(cacheUrl: string, { onSetAside }: OpenStoreOptions): Promise<Store> {
  if (/^lmdb:./.test(cacheUrl)) {
    const { LmdbStore } = await import('./LmdbStore.js');
    return LmdbStore.open(cacheUrl.slice(lmdbScheme.length), onSetAside && { onSetAside });
  }
  if (/^rediss?(\+sentinel|\+cluster)?:\/\//.test(cacheUrl)) {
    const { RedisStore } = await import('./RedisStore.js');
    return RedisStore.open(cacheUrl);
  }
  throw new StoreError('misconfigured', 'CACHE_URL must begin with memory:, lmdb: or one of the redis forms');
}
