import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { leaseMarginMs, leaseMs } from '../../../src/cache/keepLease.js';
import { LeasedCache } from '../../../src/cache/LeasedCache.js';
import { SealedStore } from '../../../src/cache/SealedStore.js';
import type { Entry } from '../../../src/cache/StoredEntries.js';
import { Sealer } from '../../../src/cache/sealing.js';
import { Secret } from '../../../src/config/secret.js';
import { MemoryStore } from '../../../src/stores/MemoryStore.js';
import { RedisStore } from '../../../src/stores/RedisStore.js';
import { leaseKeyOf, type Store } from '../../../src/stores/Store.js';
import { startRedis } from '../../support/redis.js';
import { until } from '../../support/until.js';

const workMs = 1000;
const longestHoldMs = workMs + leaseMarginMs;
const day = 24 * 3_600_000;
const scope = ['a-service'];

const openings: [kind: string, open: () => Promise<{ store: Store; stop: () => Promise<void> }>][] = [
  ['a memory store', async () => ({ store: new MemoryStore(), stop: async () => undefined })],
  [
    'Redis',
    async () => {
      const redis = await startRedis();
      return { store: await RedisStore.open(redis.url), stop: () => redis.stop() };
    },
  ],
];

describe.each(openings)('a lease in %s', (_, open) => {
  let stop: () => Promise<void>;
  afterEach(() => stop());

  /** A store, the key of the lease of `x` in it, and caches as several processes have them. */
  async function scene() {
    const { store, stop: stopServer } = await open();
    stop = async () => {
      await store.close();
      await stopServer();
    };
    const sealer = new Sealer({ from: 'client-secret', secret: new Secret('a-secret') });
    const sealed = new SealedStore({ store, sealer, scope });
    const process = (longestWorkMs = workMs) =>
      new LeasedCache<string>({
        kind: 'token',
        store: sealed,
        codec: { encode: (value) => value, decode: String },
        maxEntries: 10,
        ttlMs: () => day,
        workMs: longestWorkMs,
      });
    let fetches = 0;
    const read = async (cache: LeasedCache<string>, takesMs = 0): Promise<Entry<string>> =>
      cache.read('x', {
        acceptable: () => true,
        fetch: async () => {
          fetches += 1;
          await sleep(takesMs);
          return `value ${fetches}`;
        },
      });
    return {
      store,
      key: leaseKeyOf(sealer.current.name([...scope, 'token', 'x'])),
      process,
      read,
      fetches: () => fetches,
    };
  }

  it.each([
    ['text', Buffer.from('somebody')],
    ['bytes that are no text', randomBytes(36)],
  ])('that lasts for a day, of %s, holds up its readers no longer than a real one', async (_, forged) => {
    const { store, key, process, read, fetches } = await scene();
    await store.set(key, forged, day);
    const startedAt = performance.now();
    const entries = await Promise.all([process(), process(), process()].map((cache) => read(cache)));
    expect(performance.now() - startedAt).toBeLessThan(longestHoldMs + workMs);
    expect(entries.map(({ value }) => value)).toEqual(['value 1', 'value 1', 'value 1']);
    expect(fetches()).toBe(1);
    expect(await store.get(key)).toBeUndefined();
  });

  it('is left to a holder who needs all of its time, and to the one after', async () => {
    const { store, key, process, read, fetches } = await scene();
    // The reader meets two holders in a row, together for longer than one may hold it.
    const first = Buffer.from('first');
    await store.set(key, first, day);
    const waiting = read(process());
    await sleep(longestHoldMs - 800);
    await store.compareAndDelete(key, first);
    const second = Buffer.from('second');
    expect(await store.claim(key, second, day)).toBe(true);
    await sleep(1200);
    expect(await store.get(key)).toEqual(second);
    await store.compareAndDelete(key, second);
    expect((await waiting).value).toBe('value 1');
    expect(fetches()).toBe(1);
  });

  it('is left to a holder whose work outlasts its time by as much as the margin allows', async () => {
    const { process, read, fetches } = await scene();
    const holding = read(process(), longestHoldMs - 500);
    await sleep(50);
    const waiting = read(process());
    expect([(await holding).value, (await waiting).value]).toEqual(['value 1', 'value 1']);
    expect(fetches()).toBe(1);
  });

  it('is renewed for a holder whose work takes longer than it lasts, and not for one that is done', async () => {
    const { store, key, process, read, fetches } = await scene();
    const [holder, other] = [process(10_000), process(10_000)];
    const holding = read(holder, leaseMs + 1500);
    await sleep(leaseMs + 500);
    const waiting = read(other);
    expect([(await holding).value, (await waiting).value]).toEqual(['value 1', 'value 1']);
    expect(fetches()).toBe(1);
    expect(await store.get(key)).toBeUndefined();
  });

  it('is not renewed beyond the time after which others take its holder for dead', async () => {
    const { store, key, process, read } = await scene();
    const stuck = read(process(), longestHoldMs + 1500);
    await sleep(longestHoldMs - 300);
    expect(await store.get(key)).toBeDefined();
    await sleep(800);
    expect(await store.get(key)).toBeUndefined();
    await stuck;
  });

  it('that was deleted stays deleted, though its holder is still at work', async () => {
    const { store, key, process, read } = await scene();
    const holding = read(process(), 1500);
    await until(async () => (await store.get(key)) !== undefined);
    const holder = (await store.get(key)) as Buffer;
    expect(await store.compareAndDelete(key, holder)).toBe(true);
    await sleep(1200); // a renewal was due
    expect(await store.get(key)).toBeUndefined();
    await holding;
  });
});
