// Growth of the token cache in one process: the gateway's own classes, with a service that answers at once.

import { LeasedCache } from '../../src/cache/LeasedCache.ts';
import { SealedStore } from '../../src/cache/SealedStore.ts';
import { Sealer } from '../../src/cache/sealing.ts';
import { Secret } from '../../src/config/secret.ts';
import { MemoryStore } from '../../src/stores/MemoryStore.ts';
import { bytesEach, round, table } from '../report.js';

const lookups = 200_000;

export async function cacheGrowth(sizes) {
  const rows = [];
  for (const size of sizes) rows.push(await cached(size));
  return table(['taxpayers', 'bytes each', 'µs/lookup', 'µs to store one more, evicting one', 'entries held'], rows);
}

async function cached(size) {
  const sealer = new Sealer({ from: 'client-secret', secret: new Secret('bench-secret-not-real') });
  // Only the memory tier is measured: the shared store keeps one entry at most.
  const store = new SealedStore({ store: new MemoryStore({ maxEntries: 1 }), sealer, scope: ['bench'] });
  const cache = new LeasedCache({
    kind: 'token',
    store,
    codec: { encode: (value) => value, decode: (value) => value },
    maxEntries: size,
    ttlMs: () => 60_000,
    workMs: 1000,
  });
  const request = (id) => ({ acceptable: () => true, fetch: async () => recordOf(id) });
  const before = heapBytes();
  for (let n = 0; n < size; n += 1) await cache.read(idOf(n), request(idOf(n)));
  const bytes = (heapBytes() - before) / size;

  const lookedUpAt = performance.now();
  for (let n = 0; n < lookups; n += 1) cache.held(idOf((n * 7919) % size), () => true);
  const lookupUs = ((performance.now() - lookedUpAt) * 1000) / lookups;

  const more = Math.min(20_000, Math.max(size, 1000));
  const storedAt = performance.now();
  for (let n = size; n < size + more; n += 1) await cache.read(idOf(n), request(idOf(n)));
  const storeUs = ((performance.now() - storedAt) * 1000) / more;
  let held = 0;
  for (let n = 0; n < size + more; n += 1) if (cache.peek(idOf(n)) !== undefined) held += 1;
  return [size, bytesEach(bytes, size), lookupUs.toFixed(2), round(storeUs), held];
}

function idOf(n) {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

function recordOf(taxpayerId) {
  return {
    kind: 'record',
    record: {
      accessToken: new Secret(`token-of-${taxpayerId}`),
      taxpayerId,
      name: `Taxpayer ${taxpayerId}`,
      metadata: { customer: taxpayerId },
      providerId: 'irs',
      createdAt: '2024-01-01T00:00:00.000Z',
      status: 'AUTHORIZED',
    },
  };
}

function heapBytes() {
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
