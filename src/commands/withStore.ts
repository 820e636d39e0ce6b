import { ConfigError } from '../process/systemErrors.js';
import { openExistingStore, shownStore } from '../stores/openStore.js';
import type { Store } from '../stores/Store.js';
import { StoreError, storeCause } from '../stores/StoreError.js';

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
