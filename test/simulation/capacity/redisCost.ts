import { parentPort, workerData } from 'node:worker_threads';
import { Redis } from 'ioredis';
import { RedisStore } from '../../../src/stores/RedisStore.js';

// Measures the CPU time of a real Redis per operation, with many connections at once, each of which awaits every answer.

interface Work {
  readonly url: string;
  readonly connections: number;
  /** Operations per connection. */
  readonly rounds: number;
  /** Size of an entry: its key and its value. */
  readonly entryBytes: number;
}
const { url, connections, rounds, entryBytes } = workerData as Work;
const owner = Buffer.from('owner-of-the-lease');
const keyLength = 43;
const value = Buffer.alloc(Math.max(1, Math.round(entryBytes) - keyLength), 1);
const admin = new Redis(url);
const stores = await Promise.all(Array.from({ length: connections }, () => RedisStore.open(url)));
const [first] = stores as [RedisStore];
await first.set('known', value, 3_600_000);

/** CPU time of the server per run of `work`, in microseconds. */
async function costOf(work: (store: RedisStore, key: string) => Promise<unknown>): Promise<number> {
  const before = await cpuUs();
  await Promise.all(
    stores.map(async (store, n) => {
      for (let round = 0; round < rounds; round += 1) await work(store, `${n}-${round}`);
    }),
  );
  return ((await cpuUs()) - before) / (connections * rounds);
}

async function cpuUs(): Promise<number> {
  const text = await admin.info('cpu');
  const of = (kind: string) => Number(new RegExp(`^used_cpu_${kind}:([\\d.]+)`, 'm').exec(text)?.[1]);
  return 1e6 * (of('sys') + of('user'));
}

async function usedBytes(): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await admin.info('memory'))?.[1]);
}

await costOf((store) => store.get('known')); // warms up
const get = await costOf((store) => store.get('known'));
const acquire = await costOf((store) => store.acquire('known', owner, 3000));
const bytesBefore = await usedBytes();
const both = await costOf(async (store, name) => {
  const key = name.padEnd(keyLength, '-');
  await store.acquire(key, owner, 3000);
  await store.settle(key, owner, { key, value, ttlMs: 60_000 });
});
const bytes = ((await usedBytes()) - bytesBefore) / (connections * rounds);
parentPort?.postMessage({ costs: { get, acquire, settle: Math.max(0, both - acquire), bytes } });
await Promise.all(stores.map((store) => store.close()));
admin.disconnect();
