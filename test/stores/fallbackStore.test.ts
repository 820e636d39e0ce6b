import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Delivery } from '../../src/stores/Delivery.js';
import { FallbackStore, type FallbackStoreOptions } from '../../src/stores/FallbackStore.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { RedisStore } from '../../src/stores/RedisStore.js';
import { leaseKeyOf, type Store, type StoreEntry } from '../../src/stores/Store.js';
import { StoreError } from '../../src/stores/StoreError.js';
import { real, replacePlatform, restorePlatform } from '../support/platform.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { until } from '../support/until.js';

const bytes = (text: string) => Buffer.from(text);
const LIMIT_MS = 250;

/** Every operation once, as a request for a token uses them; resolves with the milliseconds of the slowest. */
async function useAll(store: FallbackStore, tag: string): Promise<number> {
  let slowest = 0;
  const timed = async <T>(work: Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    const result = await work;
    slowest = Math.max(slowest, performance.now() - startedAt);
    return result;
  };
  expect(await timed(store.get(`token-${tag}`))).toBeUndefined();
  const [key, leaseKey] = [`read-${tag}`, leaseKeyOf(`read-${tag}`)];
  const acquire = async (owner: string) => (await timed(store.acquire(key, bytes(owner), 60_000))).state;
  expect([await acquire('owner'), await acquire('other')]).toEqual(['taken', 'held']);
  await timed(store.set(`token-${tag}`, bytes('value'), 60_000));
  expect(await timed(store.get(`token-${tag}`))).toEqual(bytes('value'));
  const counted = () => timed(store.increment(`count-${tag}`, 1, 60_000));
  if (store.degraded) await expect(counted()).rejects.toMatchObject({ trouble: 'unreachable' });
  else expect([await counted(), await counted()]).toEqual([1, 2]);
  await timed(store.compareAndDelete(leaseKey, bytes('owner')));
  expect(await acquire('other')).toBe('taken');
  expect(await timed(store.compareAndDelete(leaseKey, bytes('other')))).toBe(true);
  return slowest;
}

describe('FallbackStore over a real Redis', () => {
  let redis: TestRedis;
  let store: FallbackStore;
  let episodes: string[];

  const open = async (options: FallbackStoreOptions = {}) => {
    episodes = [];
    store = new FallbackStore(await RedisStore.open(redis.url), {
      limitMs: LIMIT_MS,
      probeEveryMs: 100,
      onDegraded: (trouble) => void episodes.push(`degraded: ${trouble}`),
      onRecovered: (durationMs) => void episodes.push(durationMs > 0 ? 'recovered' : 'at once?'),
      ...options,
    });
    await store.start();
  };
  const recovered = () => until(() => !store.degraded);
  const pushed = (key: string, value: string | null) =>
    until(async () => (await redis.command('GET', `txgw:${key}`)) === value);

  beforeEach(async () => {
    redis = await startRedis();
    await open();
  });
  afterEach(async () => {
    redis.resume();
    await store.close();
    await redis.stop();
  });

  it('is transparent while all is well', async () => {
    await useAll(store, 'well');
    expect(store.degraded).toBe(false);
    expect(episodes).toEqual([]);
    expect(await redis.keys()).toEqual(expect.arrayContaining(['txgw:token-well', 'txgw:count-well']));
  });

  it('answers when Redis was dead from the start, and returns when it comes up', async () => {
    await store.close();
    await redis.kill();
    await open();
    expect(store.degraded).toBe(true);
    expect(await useAll(store, 'dead')).toBeLessThan(LIMIT_MS);
    expect(episodes).toEqual(['degraded: unreachable']);
    await redis.restart();
    await recovered();
    expect(episodes).toEqual(['degraded: unreachable', 'recovered']);
    await useAll(store, 'alive');
    expect(await redis.keys()).toContain('txgw:token-alive');
  });

  it('answers when Redis is killed on the way, once per episode, and tells it afterwards what it missed', async () => {
    await store.set('before', bytes('x'), 60_000);
    for (const round of ['1', '2']) {
      await redis.kill();
      expect(await useAll(store, round)).toBeLessThan(LIMIT_MS);
      await store.acquire(`pending-${round}`, bytes('owner'), 60_000);
      await redis.restart();
      await recovered();
      await pushed(`token-${round}`, 'value');
      await pushed(`{txgw:pending-${round}}:lease`, 'owner');
      await pushed(`{txgw:read-${round}}:lease`, null);
      expect(await store.get(`token-${round}`)).toEqual(bytes('value'));
    }
    expect(episodes).toEqual(['degraded: unreachable', 'recovered', 'degraded: unreachable', 'recovered']);
  });

  it('answers within the limit when Redis stops answering, then without asking it, and returns', async () => {
    redis.pause();
    expect(await useAll(store, 'slow')).toBeLessThan(3 * LIMIT_MS);
    expect(store.degraded).toBe(true);
    expect(await useAll(store, 'next')).toBeLessThan(LIMIT_MS / 2);
    redis.resume();
    await recovered();
    expect(episodes).toEqual(['degraded: timed-out', 'recovered']);
    await pushed('token-next', 'value');
    await pushed('{txgw:read-slow}:lease', null); // the lease that was applied without an answer was released as well
  });

  it('lets many requests at once through a Redis that stopped answering, in one limit', async () => {
    redis.pause();
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 300 }, (_, n) => store.get(`k${n}`)));
    expect(performance.now() - startedAt).toBeLessThan(3 * LIMIT_MS);
    expect(episodes).toEqual(['degraded: timed-out']);
  });

  it('takes a lease for its own when it was stored and only the answer came late', async () => {
    const slow = new Moody(new MemoryStore(), { delayMs: LIMIT_MS * 2, late: 1 });
    const late = new FallbackStore(slow, { limitMs: LIMIT_MS });
    expect(await late.acquire('token', bytes('me'), 60_000)).toEqual({ state: 'taken' });
    expect(await late.acquire('token', bytes('you'), 60_000)).toEqual({ state: 'held', owner: bytes('me') });
    expect(await slow.get(leaseKeyOf('token'))).toEqual(bytes('me'));
    expect(await settle(late, 'mine', 'me')).toBe(true);
    expect(await slow.get('token')).toEqual(bytes('mine'));
    await late.close();
  });

  it('does not find again what it replaced while Redis was away, nor what it deleted', async () => {
    await store.set('token', bytes('old'), 60_000);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await store.set('token', bytes('new'), 60_000);
    expect(await store.acquire('token', bytes('me'), 60_000)).toEqual({ state: 'found', entry: bytes('new') });
    expect(await store.acquire('token', bytes('me'), 60_000, bytes('new'))).toEqual({ state: 'taken' });
    expect(await settle(store, 'newest', 'me')).toBe(true);
    await store.compareAndDelete('token', bytes('newest'));
    await store.compareAndDelete('token', bytes('old'));
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await recovered();
    expect(await store.acquire('token', bytes('you'), 60_000)).toEqual({ state: 'taken' });
  });

  it('does not find what it deleted in an answer that comes after the primary was told', async () => {
    const inner = new MemoryStore();
    const primary = new Moody(inner);
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const holdBack = async <T>(work: Promise<T>): Promise<T> => {
      const answer = await work;
      await released;
      return answer;
    };
    primary.get = (key) => holdBack(inner.get(key));
    primary.acquire = (...args) => holdBack(inner.acquire(...args));
    const one = new FallbackStore(primary, { limitMs: 60_000 });
    await one.set('token', bytes('old'), 60_000);
    primary.fails = true;
    await one.compareAndDelete('token', bytes('old'));
    primary.fails = false;
    const entry = one.get('token');
    const turn = one.acquire('token', bytes('you'), 60_000);
    await one.set('other', bytes('x'), 60_000);
    await until(() => !one.takeUnsettled()); // the primary has been told
    release();
    expect(await entry).toBeUndefined();
    expect(await turn).toEqual({ state: 'taken' });
    await one.close();
  });

  describe('of what was written about somebody who was forgotten meanwhile', () => {
    const isForgotten = (key: string): boolean => key === 'forgotten';
    /** Keeps both of `keys` back; `primary` takes them, and whatever else, from the moment that it no longer `fails`. */
    const cutOff = async (forgottenKeys: Delivery['forgottenKeys'], keys = ['forgotten', 'kept']) => {
      const inner = new MemoryStore();
      const primary = new Moody(inner);
      const one = new FallbackStore(primary, { limitMs: 60_000, probeEveryMs: 20 });
      one.delivery.forgottenKeys = forgottenKeys;
      primary.fails = true;
      for (const key of keys) await one.set(key, bytes('old'), 60_000);
      const told: string[] = [];
      const { set } = primary;
      primary.set = (key, ...rest) => {
        if (!primary.fails && !key.startsWith('probe')) told.push(key);
        return set(key, ...rest);
      };
      const isTold = () => until(() => !one.takeUnsettled());
      return { inner, primary, one, told, isTold };
    };

    it('tells the primary nothing, deletes what it took without an answer, and tells the rest', async () => {
      const { inner, primary, one, told, isTold } = await cutOff(async () => isForgotten);
      await inner.set('forgotten', bytes('old'), 60_000);
      primary.fails = false;
      await isTold();
      expect(told).toEqual(['kept']);
      expect([await inner.get('forgotten'), await one.get('forgotten')]).toEqual([undefined, undefined]);
      expect(await inner.get('kept')).toEqual(bytes('old'));
      await one.close();
    });

    it('leaves what another process has written since', async () => {
      const { inner, primary, one, isTold } = await cutOff(async () => isForgotten);
      await inner.set('forgotten', bytes('new'), 60_000);
      primary.fails = false;
      await isTold();
      expect(await one.get('forgotten')).toEqual(bytes('new'));
      await one.close();
    });

    it('tells nothing at all until it knows who that is', async () => {
      const toldBefore: (readonly string[])[] = [];
      const { primary, one, told, isTold } = await cutOff(async (asked) => {
        expect(asked).toBe(primary); // by itself, which says when it does not answer
        toldBefore.push([...told]);
        if (toldBefore.length === 1) throw new StoreError('unreachable');
        return isForgotten;
      });
      primary.fails = false;
      await isTold();
      expect(toldBefore).toEqual([[], []]);
      expect(told).toEqual(['kept']);
      await one.close();
    });

    it('asks again who that is while it has much to tell', async () => {
      let pausedMs = 0;
      replacePlatform(() => ({ monotonicNow: () => real.monotonicNow() + pausedMs }));
      const forgottenKeys = async () => (pausedMs === 0 ? () => false : isForgotten);
      const { inner, primary, one, isTold } = await cutOff(forgottenKeys, ['forgotten', 'first']); // the latest is told first
      const { set } = primary;
      primary.set = (key, ...rest) => {
        if (key === 'first') pausedMs = 100; // meanwhile the other is forgotten
        return set(key, ...rest);
      };
      primary.fails = false;
      await isTold();
      expect([await inner.get('first'), await inner.get('forgotten')]).toEqual([bytes('old'), undefined]);
      await one.close();
      restorePlatform();
    });
  });

  describe('that kept something back, when it closes', () => {
    const keptBack = async (...keys: string[]) => {
      const inner = new MemoryStore();
      const primary = new Moody(inner);
      const close = jest.spyOn(primary, 'close').mockResolvedValue(); // its content is looked at afterwards
      const one = new FallbackStore(primary, { limitMs: 60_000, probeEveryMs: 60_000 });
      primary.fails = true;
      for (const key of keys) await one.set(key, bytes('x'), 60_000);
      primary.fails = false;
      return { inner, close, one };
    };

    it('tells it first, when the primary answers', async () => {
      const { inner, close, one } = await keptBack('token');
      await one.close();
      expect(await inner.get('token')).toEqual(bytes('x'));
      expect(close).toHaveBeenCalledTimes(1);
    });

    it('tells it also when it has found nothing but trouble so far, and the primary answers by now', async () => {
      const { inner, one } = await keptBack('one', 'two');
      expect(one.degraded).toBe(true);
      await one.close();
      expect([await inner.get('one'), await inner.get('two')]).toEqual([bytes('x'), bytes('x')]);
    });

    it('tells it once more when a delivery under way fails', async () => {
      const { inner, one } = await keptBack('token');
      let asked = 0;
      one.delivery.forgottenKeys = async () => {
        asked += 1;
        if (asked === 1) throw new StoreError('unreachable');
        return () => false;
      };
      await one.set('other', bytes('x'), 60_000); // begins one
      await one.close();
      expect(asked).toBe(2);
      expect(await inner.get('token')).toEqual(bytes('x'));
    });
  });

  it('closes within a second when the primary does not take what was kept back', async () => {
    const primary = new Moody(new MemoryStore());
    const one = new FallbackStore(primary, { limitMs: 60_000, probeEveryMs: 60_000 });
    primary.fails = true;
    await one.set('token', bytes('x'), 60_000);
    primary.set = () => new Promise(() => {});
    await one.close();
    await expect(one.get('token')).rejects.toMatchObject({ trouble: 'closed' });
  });

  it('still reads a Redis that is full, keeps what is written for itself, and does not forget either', async () => {
    await store.set('token-old', bytes('old'), 60_000);
    await store.claim('held', bytes('somebody'), 60_000);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    expect(await useAll(store, 'full')).toBeLessThan(LIMIT_MS);
    expect(episodes).toEqual(['degraded: full']);
    expect(await store.get('token-old')).toEqual(bytes('old'));
    expect(await store.claim('held', bytes('me'), 60_000)).toBe(false);
    expect(await store.compareAndDelete('token-old', bytes('old'))).toBe(false); // cannot be deleted there now…
    expect(await store.get('token-old')).toBeUndefined(); // …but it is gone for this process
    await store.set('held', bytes('newer'), 60_000);
    expect(await store.get('held')).toEqual(bytes('newer'));
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await recovered();
    await pushed('token-full', 'value');
    await pushed('token-old', null);
    await pushed('held', 'newer');
    expect(episodes).toEqual(['degraded: full', 'recovered']);
  });

  it('still reads a read-only replica, and returns when it is promoted', async () => {
    await store.set('token-old', bytes('old'), 60_000);
    await redis.command('CONFIG', 'SET', 'replica-serve-stale-data', 'yes');
    await redis.command('REPLICAOF', '127.0.0.1', '1'); // a master that is not there: the data stays
    expect(await useAll(store, 'replica')).toBeLessThan(LIMIT_MS);
    expect(episodes).toEqual(['degraded: read-only']);
    expect(await store.get('token-old')).toEqual(bytes('old'));
    await redis.command('REPLICAOF', 'NO', 'ONE');
    await recovered();
    await pushed('token-replica', 'value');
    expect(episodes).toEqual(['degraded: read-only', 'recovered']);
  });

  it('takes a flushed Redis and entries of a foreign kind for misses, not for trouble', async () => {
    await store.set('token', bytes('x'), 60_000);
    await redis.command('FLUSHALL');
    expect(await store.get('token')).toBeUndefined();
    await redis.command('LPUSH', 'txgw:token-foreign', 'x');
    await redis.command('HSET', 'txgw:{txgw:read-foreign}:lease', 'x', 'y');
    await redis.command('SET', 'txgw:count-foreign', 'garbage');
    await useAll(store, 'foreign');
    expect(episodes).toEqual([]);
  });

  it("counts only what Redis counts: the count of this process alone is not the fleet's", async () => {
    await redis.command('SET', 'txgw:budget', '41', 'PX', '60000');
    expect(await store.increment('budget', 1, 60_000)).toBe(42);
    await redis.kill();
    for (let n = 0; n < 3; n++) await expect(store.increment('budget', 1, 60_000)).rejects.toThrow(StoreError);
    await redis.restart();
    await recovered();
    expect(await store.increment('budget', 1, 60_000)).toBe(1); // it lost its data, and is told nothing
  });

  it('becomes neither degraded nor forgetful by one lost answer', async () => {
    const moody = new Moody(await RedisStore.open(redis.url));
    const one = new FallbackStore(moody);
    moody.fails = true;
    await one.set('lost', bytes('x'), 60_000);
    moody.fails = false;
    expect(one.degraded).toBe(false);
    expect(await one.get('lost')).toEqual(bytes('x'));
    await one.set('another', bytes('y'), 60_000);
    await pushed('lost', 'x');
    await one.close();
  });

  it('does not write an older value over a newer one when it tells Redis what it missed', async () => {
    await redis.kill();
    await store.set('token', bytes('older'), 60_000);
    await store.set('other', bytes('x'), 60_000);
    expect(store.degraded || (await store.get('token'))).toBeTruthy();
    await redis.restart();
    await store.set('token', bytes('newer'), 60_000);
    await recovered();
    await store.set('last', bytes('x'), 60_000);
    await pushed('other', 'x');
    await pushed('token', 'newer');
  });

  it('returns as soon as the primary answers though the clock was set back during the outage', async () => {
    const moody = new Moody(new MemoryStore());
    let onRecovered: (durationMs: number) => void = () => {};
    const recovered = new Promise<number>((resolve) => {
      onRecovered = resolve;
    });
    const one = new FallbackStore(moody, { probeEveryMs: 20, onRecovered });
    moody.fails = true;
    for (let n = 0; n < 2; n++) await one.set('x', bytes('x'), 1000);
    expect(one.degraded).toBe(true);
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 24 * 3_600_000);
    moody.fails = false;
    expect(await recovered.finally(() => clock.mockRestore())).toBeLessThan(10_000);
    await one.close();
  });

  it('claims nothing while Redis does not answer, and takes back what Redis heard of', async () => {
    await store.claim('taken', bytes('record'), 60_000);
    redis.pause();
    await expect(store.claim('one', bytes('claim'), 60_000)).rejects.toThrow(StoreError);
    await expect(store.claim('two', bytes('claim'), 60_000)).rejects.toThrow(StoreError);
    await expect(store.claim('taken', bytes('claim'), 60_000)).rejects.toThrow(StoreError);
    expect(await store.get('one')).toBeUndefined();
    redis.resume();
    await recovered();
    await pushed('one', null);
    expect(await store.claim('one', bytes('again'), 60_000)).toBe(true);
    expect(await store.claim('taken', bytes('again'), 60_000)).toBe(false);
    await pushed('taken', 'record');
  });

  it('takes back one claim whose answer was lost, though nobody asks for anything again', async () => {
    redis.pause();
    await expect(store.claim('one', bytes('claim'), 60_000)).rejects.toThrow(StoreError);
    redis.resume();
    await until(async () => (await redis.keys()).some((key) => key.startsWith('txgw:probe')));
    await pushed('one', null);
    await recovered();
  });

  it('says that a key is taken in a Redis that can be read and takes no writes', async () => {
    await store.claim('taken', bytes('record'), 60_000);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    for (let n = 0; n < 3; n++) {
      expect(await store.claim('taken', bytes('claim'), 60_000)).toBe(false);
      await expect(store.claim('free', bytes('claim'), 60_000)).rejects.toThrow(StoreError);
    }
  });

  it('writes under a lease of its own while Redis is away, and tells it afterwards', async () => {
    await redis.kill();
    expect(await store.acquire('token', bytes('me'), 60_000)).toEqual({ state: 'taken' });
    expect(await store.acquire('token', bytes('you'), 60_000)).toEqual({ state: 'held', owner: bytes('me') });
    expect(await settle(store, 'of another', 'you')).toBe(false);
    expect(await settle(store, 'mine', 'me')).toBe(true);
    expect(await store.get(leaseKeyOf('token'))).toBeUndefined();
    expect(await store.acquire('token', bytes('you'), 60_000)).toEqual({ state: 'found', entry: bytes('mine') });
    await redis.restart();
    await recovered();
    await pushed('token', 'mine');
  });

  it.each([
    ['the lease that covers it is still held', async () => undefined, 'mine'],
    ['the lease is gone and so is everything', (inner: Store) => endLease(inner), 'mine'],
    [
      'the next holder has it',
      async (inner: Store) => {
        await endLease(inner);
        await inner.claim(leaseKeyOf('token'), bytes('you'), 60_000);
        await settle(inner, 'newer', 'you');
      },
      'newer',
    ],
    [
      'the next holder is done',
      async (inner: Store) => {
        await endLease(inner);
        await inner.set('token', bytes('newer'), 60_000);
      },
      'newer',
    ],
  ])('delivers what was written under a lease of the primary, when %s', async (_, meanwhile, expected) => {
    const inner = new MemoryStore();
    const moody = new Moody(inner);
    const one = new FallbackStore(moody, { probeEveryMs: 20 });
    await one.acquire('token', bytes('me'), 60_000);
    moody.fails = true;
    expect(await settle(one, 'mine', 'me')).toBe(true);
    expect(await one.get('token')).toEqual(bytes('mine'));
    expect(await one.get(leaseKeyOf('token'))).toBeUndefined();
    await meanwhile(inner);
    moody.fails = false;
    await until(async () => (await one.get('token'))?.equals(bytes(expected)) === true);
    await until(async () => (await inner.get('token'))?.equals(bytes(expected)) === true);
    await until(async () => !(await inner.get(leaseKeyOf('token')))?.equals(bytes('me')));
    await one.close();
  });

  it('renews a lease of the primary through an outage, and neither takes nor keeps it there when it is lost', async () => {
    const inner = new MemoryStore();
    const moody = new Moody(inner);
    const one = new FallbackStore(moody, { probeEveryMs: 20 });
    const renew = (owner: string) => one.renew('token', bytes(owner), 60_000);
    await one.acquire('token', bytes('me'), 60_000);
    expect([await renew('me'), await renew('you')]).toEqual([true, false]);
    moody.fails = true;
    for (let n = 0; n < 3; n++) expect(await renew('me')).toBe(true); // it may well be held still
    expect(one.degraded).toBe(true);
    await endLease(inner);
    await inner.acquire('token', bytes('you'), 60_000);
    moody.fails = false;
    await until(() => !one.degraded);
    expect(await renew('me')).toBe(false);
    expect(await settle(one, 'late', 'me')).toBe(false);
    expect(await inner.get(leaseKeyOf('token'))).toEqual(bytes('you'));
    await one.close();
  });

  it('renews a lease that it took while the primary was away, also once the primary has been told', async () => {
    const inner = new MemoryStore();
    const moody = new Moody(inner);
    const one = new FallbackStore(moody, { probeEveryMs: 20 });
    const renew = (owner: string, ttlMs: number) => one.renew('token', bytes(owner), ttlMs);
    moody.fails = true;
    expect(await one.acquire('token', bytes('me'), 300)).toEqual({ state: 'taken' });
    expect([await renew('you', 60_000), await renew('me', 900)]).toEqual([false, true]);
    await new Promise((resolve) => setTimeout(resolve, 350));
    expect(await one.acquire('token', bytes('you'), 60_000)).toEqual({ state: 'held', owner: bytes('me') });
    moody.fails = false;
    await until(async () => (await inner.get(leaseKeyOf('token')))?.equals(bytes('me')) === true);
    await until(() => !one.degraded);
    expect(await renew('me', 60_000)).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 900));
    expect(await inner.acquire('token', bytes('you'), 60_000)).toEqual({ state: 'held', owner: bytes('me') });
    expect(await settle(one, 'mine', 'me')).toBe(true);
    expect(await inner.get('token')).toEqual(bytes('mine'));
    expect(await inner.get(leaseKeyOf('token'))).toBeUndefined();
    await one.close();
  });

  it('leaves a primary alone for longer when it passes its probes and fails again', async () => {
    const moody = new Moody(new MemoryStore());
    const pauses: number[] = [];
    let degradedAt = 0;
    const patient = new FallbackStore(moody, {
      probeEveryMs: 20,
      onDegraded: () => {
        degradedAt = performance.now();
      },
      onRecovered: () => void pauses.push(performance.now() - degradedAt),
    });
    for (let round = 0; round < 4; round++) {
      moody.fails = true;
      await patient.set('x', bytes('x'), 1000);
      await patient.set('x', bytes('x'), 1000);
      moody.fails = false;
      await until(() => pauses.length > round);
    }
    expect(pauses[3]).toBeGreaterThan(2 * (pauses[0] ?? 0));
    await patient.close();
  });

  it('closes while degraded, and then refuses to work', async () => {
    redis.pause();
    await store.get('x');
    await Promise.all([store.close(), store.close()]);
    await expect(store.get('x')).rejects.toThrow('closed');
  });
});

const settle = (store: Store, text: string, owner: string) =>
  store.settle('token', bytes(owner), { key: 'token', value: bytes(text), ttlMs: 60_000 });

const endLease = async (inner: Store) => void (await inner.compareAndDelete(leaseKeyOf('token'), bytes('me')));

/** Does what it is asked, unless told to fail; keeps back the answer to the first `late` asked for for `delayMs`. */
class Moody implements Store {
  readonly kind: Store['kind'];
  fails = false;
  readonly #inner: Store;
  readonly #delayMs: number;
  #late: number;

  constructor(inner: Store, { delayMs = 0, late = 0 } = {}) {
    this.kind = inner.kind;
    this.#inner = inner;
    this.#delayMs = delayMs;
    this.#late = late;
  }

  get = (key: string) => this.#inner.get(key);
  set = async (key: string, value: Buffer, ttlMs: number) => {
    if (this.fails) throw new StoreError('unreachable');
    await this.#inner.set(key, value, ttlMs);
  };
  claim = async (key: string, value: Buffer, ttlMs: number) => {
    if (this.fails) throw new StoreError('unreachable');
    return this.#inner.claim(key, value, ttlMs);
  };
  acquire = async (key: string, owner: Buffer, ttlMs: number, refused?: Buffer) => {
    if (this.fails) throw new StoreError('unreachable');
    const turn = await this.#inner.acquire(key, owner, ttlMs, refused);
    if (this.#late-- > 0) await new Promise((resolve) => setTimeout(resolve, this.#delayMs));
    return turn;
  };
  renew = async (key: string, owner: Buffer, ttlMs: number) => {
    if (this.fails) throw new StoreError('unreachable');
    return this.#inner.renew(key, owner, ttlMs);
  };
  settle = async (key: string, owner: Buffer, entry: StoreEntry) => {
    if (this.fails) throw new StoreError('unreachable');
    return this.#inner.settle(key, owner, entry);
  };
  compareAndDelete = async (key: string, expected: Buffer) => {
    if (this.fails) throw new StoreError('unreachable');
    return this.#inner.compareAndDelete(key, expected);
  };
  increment = (key: string, by: number, ttlMs: number) => this.#inner.increment(key, by, ttlMs);
  list = (prefix: string) => this.#inner.list(prefix);
  close = () => this.#inner.close();
}
