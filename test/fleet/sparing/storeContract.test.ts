import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { LmdbStore } from '../../../src/stores/LmdbStore.js';
import { MemoryStore } from '../../../src/stores/MemoryStore.js';
import { RedisStore } from '../../../src/stores/RedisStore.js';
import { startRedis } from '../../support/redis.js';
import { storeContract } from '../../support/stores/storeContract.js';

const newDirectory = () => mkdtemp(join(tmpdir(), 'store-contract-'));

storeContract('The store in memory', async () => {
  const store = new MemoryStore();
  return { open: async () => store, pass: sleep, stop: () => store.close() };
});

storeContract('The store in LMDB', async () => {
  const directory = await newDirectory();
  const open = async () => LmdbStore.open(directory);
  return { open, pass: sleep, stop: () => rm(directory, { recursive: true }) };
});

storeContract('The store in Redis', async () => {
  const redis = await startRedis({ password: 'p@ss/word' });
  return { open: () => RedisStore.open(redis.url), pass: sleep, stop: redis.stop };
});

it('The store in LMDB has a directory and files that only their owner can read', async () => {
  const directory = await newDirectory();
  const path = join(directory, 'a', 'cache');
  const store = LmdbStore.open(path);
  await store.set('key', Buffer.from('x'), 1000);
  const modes = await Promise.all(
    ['', 'data.mdb', 'lock.mdb'].map(async (name) => (await stat(join(path, name))).mode),
  );
  expect(modes.map((mode) => mode & 0o777)).toEqual([0o700, 0o600, 0o600]);
  await store.close();
  await rm(directory, { recursive: true });
});

it('The store in memory holds no more entries and no more bytes than it was told', async () => {
  const store = new MemoryStore({ maxEntries: 3, maxBytes: 2000 });
  const kept = async (keys: readonly string[]) => {
    const values = await Promise.all(keys.map((key) => store.get(key)));
    return keys.filter((_, n) => values[n] !== undefined);
  };
  for (const key of ['a', 'b', 'c', 'd']) await store.set(key, Buffer.from('x'), 60_000);
  expect(await kept(['a', 'b', 'c', 'd'])).toEqual(['b', 'c', 'd']);
  await store.set('large', Buffer.alloc(1800), 60_000);
  expect(await kept(['b', 'c', 'd', 'large'])).toEqual(['d', 'large']);
  await store.close();
});
