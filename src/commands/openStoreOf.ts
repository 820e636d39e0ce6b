import { SealedStore, scopeOf } from '../cache/SealedStore.js';
import { Sealer } from '../cache/sealing.js';
import type { Config } from '../config/config.js';
import { ConfigError } from '../config/config.js';
import { openExistingStore, shownStore } from '../stores/openStore.js';
import { StoreError, storeCause } from '../stores/StoreError.js';

export interface OpenStore {
  readonly sealer: Sealer;
  readonly sealed: SealedStore;
}

/** Runs `work` with the store that the gateways of this configuration use. @throws StoreError, ConfigError */
export async function withStoreOf<T>(
  { upstream, cache, service }: Config,
  use: 'read' | 'write',
  work: (opened: OpenStore) => Promise<T>,
) {
  if (upstream === 'embedded-sandbox') {
    throw new ConfigError(['UPSTREAM_BASE_URL is not set: the embedded sandbox keeps nothing after it stops']);
  }
  const store = await openExistingStore(cache.url, use);
  try {
    const sealer = Sealer.of(cache, upstream.clientSecret);
    const scope = scopeOf(upstream.baseUrl, upstream.clientId, service.apiVersion);
    return await work({ sealer, sealed: new SealedStore({ store, sealer, scope }) });
  } catch (error) {
    throw error instanceof StoreError ? new StoreError(error.trouble, storeProblem(cache.url, error)) : error;
  } finally {
    await store.close();
  }
}

/** What is wrong with the store, in one line with nothing confidential. */
export function storeProblem(cacheUrl: string, error: StoreError): string {
  if (error.trouble === 'misconfigured') return error.message;
  return `CACHE_URL (${shownStore(cacheUrl)}): ${storeCause(cacheUrl, error)}`;
}
