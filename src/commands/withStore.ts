import { SealedStore } from '../cache/SealedStore.js';
import { Sealer } from '../cache/Sealer.js';
import type { Config } from '../config/config.js';
import { ConfigError } from '../process/systemErrors.js';
import { openExistingStore, shownStore } from '../stores/openStore.js';
import type { Store } from '../stores/Store.js';
import { StoreError, storeCause } from '../stores/StoreError.js';

/** Runs `work` with the store that the gateways of this configuration use, and their keys. @throws ConfigError */
export async function withSealedStore<T>(
  config: Config,
  use: 'read' | 'write',
  work: (sealed: SealedStore, sealer: Sealer) => Promise<T>,
): Promise<T> {
  if (config.isSandbox) {
    throw new ConfigError('UPSTREAM_BASE_URL is not set: the embedded sandbox keeps nothing after it stops');
  }
  const sealer = new Sealer(config.UPSTREAM_CLIENT_SECRET, config.CACHE_ENCRYPTION_KEY);
  return withStore(config.CACHE_URL, use, (store) => work(new SealedStore({ store, sealer, ...config }), sealer));
}

/** Runs `work` with an existing store. @throws ConfigError */
export async function withStore<T>(url: string, use: 'read' | 'write', work: (store: Store) => Promise<T>): Promise<T> {
  let store: Store | undefined;
  try {
    store = await openExistingStore(url, use);
    return await work(store);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new ConfigError(`CACHE_URL (${shownStore(url)}): ${storeCause(url, error)}`);
  } finally {
    await store?.close();
  }
}
