import { SealedStore, scopeOf } from '../cache/SealedStore.js';
import { SubjectEntries } from '../cache/SubjectEntries.js';
import { Sealer } from '../cache/sealing.js';
import { ConfigError } from '../config/ConfigError.js';
import type { Config } from '../config/config.js';
import { tokenNames } from '../datasources/tokenAnswer.js';
import { openExistingStore, shownStore } from '../stores/openStore.js';
import type { Store } from '../stores/Store.js';
import { StoreError, storeCause } from '../stores/StoreError.js';

export interface OpenStore {
  readonly store: Store;
  readonly sealer: Sealer;
  readonly sealed: SealedStore;
  readonly entries: SubjectEntries;
}

/** Runs `work` with the store that the gateways of this configuration share. @throws StoreError, ConfigError */
export async function withStoreOf<T>({ upstream, cache, service }: Config, work: (opened: OpenStore) => Promise<T>) {
  if (upstream === 'embedded-sandbox') {
    throw new ConfigError([
      'UPSTREAM_BASE_URL is missing: what an embedded sandbox has stored ends with its process, so there is nothing to read',
    ]);
  }
  const store = await openExistingStore(cache.url);
  try {
    const sealer = Sealer.of(cache, upstream.clientSecret);
    const scope = scopeOf(upstream.baseUrl, upstream.clientId, service.apiVersion);
    const options = { store, sealer, scope };
    const sealed = new SealedStore(options);
    const entries = new SubjectEntries(store, sealed, (id) => Object.values(tokenNames(id)));
    return await work({ store, sealer, sealed, entries });
  } catch (error) {
    throw error instanceof StoreError ? new StoreError(error.trouble, storeProblem(cache.url, error)) : error;
  } finally {
    await store.close();
  }
}

/** What is wrong with the store, in one line with nothing confidential. */
export function storeProblem(cacheUrl: string, { trouble, message, detail }: StoreError): string {
  if (trouble === 'misconfigured') return message;
  const kind = cacheUrl.startsWith('lmdb:') ? 'lmdb' : 'redis';
  return `CACHE_URL (${shownStore(cacheUrl)}): ${storeCause(kind, trouble, detail)}`;
}
