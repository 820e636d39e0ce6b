import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { LocalStore } from '../../../src/stores/LocalStore.js';
import { RedisStore } from '../../../src/stores/RedisStore.js';
import { atEnd } from '../../support/atEnd.js';
import { startRedis } from '../../support/redis.js';
import { read } from '../../support/repository.js';
import { scratch } from '../../support/scratch.js';
import { SharedStore } from '../../support/stores/SharedStore.js';
import { storeContract } from '../../support/stores/storeContract.js';

storeContract('The store of simulated fleets', async () => {
  const store = new SharedStore();
  return { open: async () => store, pass: sleep };
});

storeContract('The store in Redis, for a user who may do only what the page on operations says', async () => {
  const redis = await startRedis();
  const rules = /```text\n(~txgw:[^`]*)```/.exec(read('docs/operations.md'))?.[1]?.trim().split(/\s+/) ?? [];
  await redis.command('ACL', 'SETUSER', 'app', 'on', '>p@ss/word', 'resetchannels', ...rules);
  const url = redis.url.replace('redis://', `redis://app:${encodeURIComponent('p@ss/word')}@`);
  return { open: () => RedisStore.open(url), pass: sleep };
});

const place = { record: 'record', field: 'token' };
const wish = { owner: 'me', leaseMs: 3000 };
const value = Buffer.from('x');
const outcome = { version: 'v', value, ageMs: 0, begunAt: 0, ttlMs: 60_000 };

it('The store in memory drops the records used least recently when it is full, and no item', async () => {
  const store = new LocalStore(5 * 301);
  const put = (key: string) => store.put(key, value, 60_000, 'always');
  await put('link');
  await store.increment('count', 60_000);
  for (const record of ['a', 'b', 'c', 'a', 'b', 'd']) {
    const turn = await store.acquire({ ...place, record }, { ...wish, refused: record === 'b' ? 'v' : undefined });
    if (turn.state === 'taken') await store.settle({ ...place, record }, 'me', outcome);
  }
  const kept = await Promise.all(['a', 'b', 'c', 'd'].map((record) => store.fields(record)));
  expect(kept.map(({ length }) => length)).toEqual([1, 1, 0, 1]);
  const refused = () => expect(put('very last')).rejects.toMatchObject({ code: 'EFULL' });
  for (const key of ['more', 'still', 'yet']) await put(key);
  await refused();
  await refused();
  await store.deleteIf('yet', value);
  await put('last');
  await refused();
  expect((await store.increment('count', 60_000)).count).toBe(2);
  expect((await store.get('link'))?.value.buffer.byteLength).toBe(1); // a buffer of Node's pool would keep all of the pool
  jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000);
  expect(await put('very last')).toBe(true);
  jest.restoreAllMocks();
  await store.close();
});

it('A store in a file finds nothing whose time was over while no process ran', async () => {
  const directory = scratch();
  const before = await LocalStore.open(directory, { waitMs: 0 });
  await before.put('short', value, 1000, 'always');
  await before.put('long', value, 60_000, 'always');
  await before.settle(place, 'me', { ...outcome, ageMs: 5000 });
  await before.close();
  await sleep(1100);
  const after = await LocalStore.open(directory, { waitMs: 0 });
  expect([await after.get('short'), (await after.get('long'))?.value]).toEqual([undefined, value]);
  expect((await after.fields(place.record))[0]?.ageMs).toBeGreaterThan(6000);
  await after.close();
});

it('A store in a file has written what it acknowledges, also to those who came during a write', async () => {
  const directory = scratch();
  const store = await LocalStore.open(directory, { waitMs: 0 });
  const file = await open(join(directory, 'journal'));
  const write = jest.spyOn(Object.getPrototypeOf(file), 'write');
  const original = write.getMockImplementation() as (...args: unknown[]) => unknown;
  write.mockImplementation(async function (this: unknown, ...args: unknown[]) {
    await sleep(20);
    return original.apply(this, args);
  });
  const put = (key: string) => store.put(key, value, 60_000, 'always');
  const first = put('first');
  await sleep(5);
  const written = await Promise.all(
    ['one', 'two', 'three'].map(async (key) => {
      await put(key);
      return readFileSync(join(directory, 'journal'), 'latin1').includes(key);
    }),
  );
  expect(written).toEqual([true, true, true]);
  await first;
  write.mockRestore();
  await Promise.all([file.close(), store.close()]);
});

/** A store over a new Redis, and a client of that. */
async function storeInRedis() {
  const { url } = await startRedis();
  const [store, client] = [await RedisStore.open(url), new Redis(url)];
  atEnd(async () => {
    client.disconnect();
    await store.close();
  });
  return { store, client };
}

it('A taxpayer in Redis lives as long as its token, with about a hundred jobs, and an hour without one; what is of another type is replaced', async () => {
  const { store, client } = await storeInRedis();
  const write = async (field: string, ttlMs: number) => {
    await store.acquire({ record: 'r', field }, wish);
    await store.settle({ record: 'r', field }, 'me', { ...outcome, ttlMs });
  };
  await client.set('txgw:r', 'a string');
  await client.rpush('txgw:item', 'a list');
  await client.set('txgw:text', 'not a number', 'PX', 60_000);
  await write('job:a', 30 * 86_400_000);
  expect(await client.pttl('txgw:r')).toBeLessThanOrEqual(3_600_000);
  await write('token', 30 * 86_400_000);
  await write('job:b', 60_000);
  expect(await client.pttl('txgw:r')).toBeGreaterThan(29 * 86_400_000);
  expect((await store.fields('r')).map(({ name }) => name).sort()).toEqual(['job:a', 'job:b', 'token']);
  for (let n = 0; n < 130; n += 1) await write(`job:${n}`, 60_000);
  const fields = (await store.fields('r')).map(({ name }) => name);
  expect(fields).toEqual(expect.arrayContaining(['token', 'job:129']));
  expect(fields).not.toContain('job:0');
  expect(fields.length).toBeLessThanOrEqual(101);
  expect(await store.get('item')).toBeUndefined();
  expect((await store.increment('item', 1000)).count).toBe(1);
  await store.increment('hour', 60_000);
  expect(await store.increment('hour', 1000)).toEqual({ count: 1, leftMs: 1000 }); // the clock was set back
  await client.set('txgw:pause', 'of an hour', 'PX', 86_400_000);
  expect(await store.put('pause', value, 1000, 'if-longer')).toBe(true); // the same
  expect((await store.increment('text', 1000)).count).toBe(1);
});

it.each([['no time at all'], [String(Date.now() + 86_400_000)]])(
  'A record in Redis that was marked as forgotten at %j, or leased before its clock was set back, takes values all the same',
  async (forgotten) => {
    const { store, client } = await storeInRedis();
    await client.hset('txgw:record', { forgotten, 'token:lease': `somebody ${Date.now() + 86_400_000}\n` });
    expect(await store.acquire(place, wish)).toMatchObject({ state: 'taken' });
    expect(await store.settle(place, 'me', { ...outcome, begunAt: Date.now() })).toBe(true);
    expect(await store.acquire(place, wish)).toMatchObject({ state: 'found' });
  },
);
