import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { OneKeyStore } from '../../src/cache/OneKeyStore.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { failureKeyOf, leaseKeyOf } from '../../src/stores/Store.js';
import { replacePlatform, restorePlatform } from '../support/platform.js';

const ring = new Sealer({ from: 'client-secret', secret: new Secret('a-secret') }).current;
const minute = 60_000;

describe('A store of one key', () => {
  let store: MemoryStore;
  let now: number;
  let one: OneKeyStore;
  beforeEach(() => {
    store = new MemoryStore();
    now = 1000;
    replacePlatform(() => ({ now: () => now }));
    one = new OneKeyStore(ring, { store, scope: ['scope'] });
  });
  afterEach(restorePlatform);
  const lasting = (value: unknown) => ({ value, expiresAt: now + minute, ttlMs: minute });
  const subject = (...parts: string[]) => ({ subject: 'somebody', parts });

  it('gives each name of each scope a key of its own, and all that is about one subject the same beginning', () => {
    const other = new OneKeyStore(ring, { store, scope: ['other'] });
    const names = [['a'], ['b'], ['a', 'b'], subject('a'), subject('b'), { subject: 'nobody', parts: ['a'] }];
    const keys = [one, other].flatMap((each) => names.map((name) => each.keyOf(name)));
    expect(new Set(keys).size).toBe(keys.length);
    for (const key of [one.keyOf(subject('a')), one.keyOf(subject('b'))])
      expect(key.startsWith(one.beginningOf('somebody'))).toBe(true);
    expect(one.beginningOf('somebody')).not.toBe(one.beginningOf('nobody'));
    expect(one.beginningOf('somebody')).toMatch(/^[\w-]+\.$/);
  });

  it('gives back what was set, by name and by key, until it expires by its own clock', async () => {
    await one.set(['a'], lasting({ b: 1 }), minute);
    expect(await one.find(['a'])).toMatchObject(lasting({ b: 1 }));
    expect(await one.findKey(one.keyOf(['a']))).toMatchObject({ value: { b: 1 } });
    expect(await one.find(['b'])).toBeUndefined();
    now += minute - 1;
    expect((await one.find(['a']))?.value).toEqual({ b: 1 });
    now += 1;
    const bytes = await store.get(one.keyOf(['a']));
    expect(await one.find(['a'])).toEqual({ value: undefined, expiresAt: 0, ttlMs: 0, bytes });
  });

  it('takes what was moved to another name, or was never an entry, for nothing, but tells its bytes', async () => {
    await one.set(['a'], lasting(1), minute);
    const bytes = (await store.get(one.keyOf(['a']))) as Buffer;
    await store.set(one.keyOf(['b']), bytes, minute);
    expect(await one.find(['b'])).toEqual({ value: undefined, expiresAt: 0, ttlMs: 0, bytes });
    const key = one.keyOf(['c']);
    for (const text of ['no JSON', '7', '{"value":1}', '{"expiresAt":"x"}', '{"expiresAt":1e15,"ttlMs":"x"}']) {
      await store.set(key, ring.seal(key, Buffer.from(text)), minute);
      expect((await one.find(['c']))?.expiresAt).toBe(0);
    }
  });

  it('claims a name that is free, and takes back its own claim alone', async () => {
    const withdraw = await one.claim(['a'], lasting('mine'), minute);
    expect(await one.claim(['a'], lasting('yours'), minute)).toBeUndefined();
    expect((await one.find(['a']))?.value).toBe('mine');
    await withdraw?.();
    expect(await one.find(['a'])).toBeUndefined();
    const again = await one.claim(['a'], lasting('mine'), minute);
    await one.set(['a'], lasting('newer'), minute);
    await again?.();
    expect((await one.find(['a']))?.value).toBe('newer');
  });

  it('leases a name: taken, held, renewed, settled, found', async () => {
    expect(await one.acquire(['a'], 'me', minute)).toEqual({ state: 'taken' });
    expect(await one.leaseOwner(['a'])).toEqual(Buffer.from('me'));
    expect(await store.get(leaseKeyOf(one.keyOf(['a'])))).toEqual(Buffer.from('me'));
    expect(await one.acquire(['a'], 'you', minute)).toEqual({ state: 'held', owner: Buffer.from('me') });
    expect([await one.renew(['a'], 'you', minute), await one.renew(['a'], 'me', minute)]).toEqual([false, true]);
    expect(await one.settle(['a'], lasting('yours'), minute, 'you')).toBe(false);
    expect(await one.settle(['a'], lasting('mine'), minute, 'me')).toBe(true);
    const turn = await one.acquire(['a'], 'you', minute);
    expect(turn).toMatchObject({ state: 'found', entry: { value: 'mine' } });
    const refused = turn.state === 'found' ? turn.entry.bytes : undefined;
    expect(await one.acquire(['a'], 'you', minute, refused)).toEqual({ state: 'taken' });
    expect([await one.release(['a'], 'me'), await one.release(['a'], Buffer.from('you'))]).toEqual([false, true]);
    expect(await one.leaseOwner(['a'])).toBeUndefined();
  });

  it('leaves a failure under the owner of the lease, for those who waited', async () => {
    await one.acquire(['a'], 'me', minute);
    expect(await one.fail(['a'], lasting('why'), minute, 'me')).toBe(true);
    expect((await one.failureOf(['a'], 'me'))?.value).toBe('why');
    expect(await one.failureOf(['a'], 'you')).toBeUndefined();
    expect(await store.get(failureKeyOf(one.keyOf(['a']), 'me'))).toBeDefined();
    expect(await one.find(['a'])).toBeUndefined();
  });

  it('counts under the key of the name', async () => {
    expect([await one.increment(['n'], 2, minute), await one.increment(['n'], 3, minute)]).toEqual([2, 5]);
    expect(await store.get(one.keyOf(['n']))).toEqual(Buffer.from('5'));
  });
});
