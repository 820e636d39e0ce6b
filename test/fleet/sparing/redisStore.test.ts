import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RedisStore } from '../../../src/stores/RedisStore.js';
import { parseRedisUrl } from '../../../src/stores/redisClient.js';
import {
  startRedis,
  startRedisCluster,
  startRedisSentinel,
  type TestRedis,
  type TestRedisCluster,
} from '../../support/redis.js';
import { storeContract } from '../../support/stores/storeContract.js';
import { until } from '../../support/until.js';

for (const [name, start] of [
  ['RedisStore on one server', () => startRedis({ password: 'p@ss/word' })],
  ['RedisStore on a cluster', startRedisCluster],
  ['RedisStore behind a sentinel', () => startRedisSentinel()],
] as const) {
  storeContract(name, async () => {
    const redis = await start();
    return {
      open: () => RedisStore.open(redis.url),
      pass: (ms) => sleep(ms),
      url: redis.url,
      stop: () => redis.stop(),
    };
  });
}

describe('RedisStore', () => {
  let redis: TestRedis;
  let store: RedisStore;
  beforeAll(async () => {
    redis = await startRedis();
    store = await RedisStore.open(redis.url);
  });
  afterAll(async () => {
    await store.close();
    await redis.stop();
  });

  it('takes a foreign type for a miss, and lets it be overwritten', async () => {
    for (const key of ['get', 'lease', 'count', 'delete']) await redis.command('LPUSH', `txgw:${key}`, 'x');
    expect(await store.get('get')).toBeUndefined();
    expect(await store.compareAndDelete('delete', Buffer.from('x'))).toBe(false);
    expect(await store.claim('lease', Buffer.from('owner'), 1000)).toBe(true);
    expect(await store.increment('count', 1, 1000)).toBe(1);
    await store.set('get', Buffer.from('ours'), 1000);
    expect(await store.get('get')).toEqual(Buffer.from('ours'));
  });

  it('does not let an entry without expiry hold a lease or a count for ever', async () => {
    await redis.command('SET', 'txgw:stuck', 'x');
    await redis.command('SET', 'txgw:stuck-count', '999999');
    expect(await store.claim('stuck', Buffer.from('owner'), 1000)).toBe(true);
    expect(await store.increment('stuck-count', 1, 1000)).toBe(1);
  });

  it('begins a count anew that is too large to be exact', async () => {
    await redis.command('SET', 'txgw:large-count', '1234567890123456789', 'PX', '60000');
    expect(await store.increment('large-count', 1, 1000)).toBe(1);
  });

  it('writes every key with its prefix and an expiry', async () => {
    await redis.command('FLUSHALL');
    await store.set('a', Buffer.from('x'), 0.4);
    await store.set('b', Buffer.from('x'), 1000.4);
    await store.claim('c', Buffer.from('x'), 1000);
    await store.increment('d', 1, 1000);
    const keys = (await redis.keys()).filter((key) => key !== 'txgw:a');
    expect(keys.sort()).toEqual(['txgw:b', 'txgw:c', 'txgw:d']);
    for (const key of keys) expect(Number(await redis.command('PTTL', key))).toBeGreaterThan(0);
  });

  it('goes on after its scripts were flushed and after its connections were killed', async () => {
    await redis.command('SCRIPT', 'FLUSH');
    expect(await store.claim('flushed', Buffer.from('x'), 1000)).toBe(true);
    // Of the commands that follow one another only the one under way when its connection was killed may fail.
    const isAnswered = () =>
      store.get('killed').then(
        () => true,
        () => false,
      );
    await until(async () => {
      const killed = redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
      for (let n = 0; n < 10_000 && (await isAnswered()); n += 1);
      const isNextAnswered = await isAnswered();
      await killed;
      return isNextAnswered;
    });
  });

  it('fails at once while the server is gone, queues nothing, and comes back by itself', async () => {
    const other = await startRedis();
    const client = await RedisStore.open(other.url);
    await other.kill();
    await until(() =>
      client.set('x', Buffer.from('x'), 1000).then(
        () => false,
        (error) => error.trouble === 'unreachable',
      ),
    );
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 100 }, () => expect(client.get('x')).rejects.toThrow('cannot be reached')));
    expect(performance.now() - startedAt).toBeLessThan(500);
    await other.restart();
    await until(() =>
      client.claim('x', Buffer.from('x'), 1000).then(
        () => true,
        () => false,
      ),
    );
    await client.close();
    await other.stop();
  });

  it('rejects in time and closes while the server does not answer', async () => {
    const other = await startRedis();
    const client = await RedisStore.open(other.url);
    other.pause();
    await expect(client.get('x')).rejects.toMatchObject({ trouble: 'timed-out' });
    await client.close();
    await (await RedisStore.open(other.url)).close();
    await other.stop();
  });

  it('never repeats a password or an argument in an error', async () => {
    const closed = await startRedis({ password: 'right-password' });
    const client = await RedisStore.open(closed.url.replace('right', 'planted'));
    const error = await client.set('planted-key', Buffer.from('planted-value'), 1000).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error)) + String(error.cause)).not.toContain('planted');
    await client.close();
    await closed.stop();
  });
});

describe('RedisStore on a cluster', () => {
  let cluster: TestRedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  }, 60_000);
  afterAll(() => cluster.stop());

  it('spreads its keys over the masters and finds them all', async () => {
    const store = await RedisStore.open(cluster.url);
    const keys = Array.from({ length: 60 }, (_, n) => `key-${n}`);
    await Promise.all(keys.map((key) => store.claim(key, Buffer.from(key), 60_000)));
    expect((await Promise.all(keys.map((key) => store.get(key)))).map(String)).toEqual(keys);
    for (const node of cluster.nodes) expect((await node.keys()).length).toBeGreaterThan(5);
    await store.close();
  });
});

describe('RedisStore behind a sentinel', () => {
  it('follows the master after a failover and keeps what it stored', async () => {
    const sentinel = await startRedisSentinel();
    const store = await RedisStore.open(sentinel.url);
    await store.set('token', Buffer.from('kept'), 600_000);
    await sentinel.nodes[0]?.command('WAIT', 1, 5000);
    await sentinel.failover();
    await until(() =>
      store.claim('lease', Buffer.from('x'), 60_000).then(
        () => true,
        () => false,
      ),
    );
    expect(await store.get('token')).toEqual(Buffer.from('kept'));
    expect(await sentinel.nodes[1]?.command('ROLE')).toContain('master');
    await store.close();
    await sentinel.stop();
  }, 60_000);
});

describe('a redis CACHE_URL', () => {
  it.each([
    ['redis://cache', { mode: 'single', tls: false, nodes: [{ host: 'cache', port: 6379 }], database: 0 }],
    ['rediss://u:p%40%2F@cache:6380/2', { tls: true, username: 'u', password: 'p@/', database: 2 }],
    ['redis://:p@[::1]:7000/', { nodes: [{ host: '::1', port: 7000 }], username: undefined, password: 'p' }],
    [
      'rediss+sentinel://u:p@a:1,b/main?db=3&sentinelUsername=s&sentinelPassword=t%40',
      {
        mode: 'sentinel',
        tls: true,
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 26379 },
        ],
        sentinelName: 'main',
        database: 3,
        sentinelUsername: 's',
        sentinelPassword: 't@',
      },
    ],
    ['redis+cluster://:p@a:1,b:2', { mode: 'cluster', nodes: [{ port: 1 }, { port: 2 }], password: 'p' }],
  ])('%s is understood', (url, address) => {
    expect(parseRedisUrl(url)).toMatchObject(address);
  });

  it.each([
    'redis://:planted@a:1,b:2',
    'redis://:planted@a:99999',
    'redis://:planted@a:x',
    'redis://:planted@a/db',
    'redis://:planted%@a',
    'redis://:planted@a?x=planted',
    'redis+sentinel://:planted@a:1',
    'redis+cluster://:planted@a:1/3',
    'redis://',
    'redis://:planted@',
  ])('%s is refused without repeating it', (url) => {
    expect(() => parseRedisUrl(url)).toThrow(/^CACHE_URL (?!.*planted)/);
  });
});
