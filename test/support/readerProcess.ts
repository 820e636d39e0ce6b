import { openStore } from '../../src/stores/openStore.js';
import { readerOver, readId } from './reader.js';

/**
 * A process that reads once: `node … readerProcess.ts <url>`. It sends `fetching` when it holds the lease, uses the next
 * message as the fetched value, and then sends what it answered and what it holds in memory.
 */
const store = await openStore(process.argv[2] ?? '');
const { cache } = readerOver(store);
const { value } = await cache.read(readId, {
  acceptable: () => true,
  fetch: () =>
    new Promise<string>((resolve) => {
      process.once('message', (text: string) => resolve(text));
      process.send?.('fetching');
    }),
});
process.send?.({ answered: value, held: cache.peek(readId)?.value });
await store.close();
process.disconnect?.();
