import { LeasedCache } from '../../src/cache/LeasedCache.js';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import type { Store } from '../../src/stores/Store.js';

/** The one id that is read. */
export const readId = 'x';

/** A cache of texts over `store`, as each process of a fleet has one, and the store it uses. */
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

/** The name of what is read, and of its lease. */
export const readName = { subject: readId, parts: ['text', readId] };
