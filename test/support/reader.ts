import { LeasedCache } from '../../src/cache/LeasedCache.js';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import type { Store } from '../../src/stores/Store.js';

/** The only id that readers read. */
export const readId = 'x';

/** A cache of strings over `store`, as in each process of a fleet, and the sealed store it uses. */
export function readerOver(store: Store): { readonly cache: LeasedCache<string>; readonly sealed: SealedStore } {
  const sealer = new Sealer({ from: 'client-secret', secret: new Secret('a-secret') });
  const sealed = new SealedStore({ store, sealer, scope: ['a-service'] });
  const cache = new LeasedCache<string>({
    kind: 'text',
    store: sealed,
    codec: { encode: (value) => value, decode: String },
    maxEntries: 10,
    ttlMs: () => 60_000,
    workMs: 500,
  });
  return { cache, sealed };
}

/** The store name of that entry and of its lease. */
export const readName = ['text', readId];
