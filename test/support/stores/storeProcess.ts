import { openStore } from '../../../src/stores/openStore.js';
import { type Operation, perform } from './storeModel.js';

/**
 * A process of its own that opens a store and does as it is told over IPC: `node … storeProcess.ts <url>`.
 * It says what came of each order, and ends by itself when told to close, unless something keeps it alive.
 */
export type Order =
  | { readonly do: 'get'; readonly key: string }
  | { readonly do: 'set'; readonly key: string; readonly value: string; readonly ttlMs: number }
  | { readonly do: 'acquire'; readonly key: string; readonly owner: string }
  | { readonly do: 'compareAndDelete'; readonly key: string; readonly expected: string }
  | { readonly do: 'increment'; readonly key: string; readonly times: number }
  | { readonly do: 'writeForEver'; readonly key: string }
  | { readonly do: 'writeThenBlock'; readonly key: string; readonly ms: number }
  | { readonly do: 'perform'; readonly base: string; readonly what: Operation }
  | { readonly do: 'isDegraded' }
  | { readonly do: 'close' };

const store = await openStore(process.argv[2] ?? 'memory:', { limitMs: 5000 });

process.on('message', async (order: Order) => {
  process.send?.({ result: await carryOut(order) });
  if (order.do === 'close') process.disconnect();
});
process.send?.({ result: 'ready' });

async function carryOut(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'get':
      return (await store.get(order.key))?.toString('latin1');
    case 'set':
      return store.set(order.key, Buffer.from(order.value, 'latin1'), order.ttlMs);
    case 'acquire':
      return (await store.acquire(order.key, Buffer.from(order.owner), 60_000)).state === 'taken';
    case 'compareAndDelete':
      return store.compareAndDelete(order.key, Buffer.from(order.expected));
    case 'increment':
      return Promise.all(Array.from({ length: order.times }, () => store.increment(order.key, 1, 60_000)));
    case 'writeForEver':
      return writeForEver(order.key);
    case 'writeThenBlock':
      return writeThenBlock(order.key, order.ms);
    case 'perform':
      return perform(store, order.base, order.what);
    case 'isDegraded':
      return store.degraded;
    case 'close':
      return store.close();
    default:
      return order satisfies never;
  }
}

/** Overwrites one entry with ever another number and 64 KiB of it, saying each number once it is stored. */
async function writeForEver(key: string): Promise<void> {
  for (let n = 0; ; n++) {
    await store.set(key, Buffer.alloc(65_536, String(n % 10)), 60_000);
    process.send?.({ written: n % 10 });
  }
}

/** Begins to take a lease and then leaves the event loop no time, as a burst of requests would. */
async function writeThenBlock(key: string, ms: number): Promise<boolean> {
  const taken = store.claim(key, Buffer.from('x'), 60_000);
  await new Promise((resolve) => setImmediate(resolve));
  for (const end = performance.now() + ms; performance.now() < end; );
  return taken;
}
