import { setTimeout as sleep } from 'node:timers/promises';
import { RedisStore } from '../../src/stores/RedisStore.js';
import { startRedisCluster, startRedisSentinel } from '../support/redis.js';
import { storeContract } from '../support/stores/storeContract.js';

for (const [name, startServers] of [
  ['a cluster', startRedisCluster],
  ['a group behind a sentinel', () => startRedisSentinel()],
] as const) {
  storeContract(`The store in Redis that is ${name}`, async () => {
    const redis = await startServers();
    return { open: () => RedisStore.open(redis.url), pass: sleep };
  });
}
