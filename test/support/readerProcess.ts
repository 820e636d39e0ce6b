import { openStore } from '../../src/stores/openStore.js';
import { readerOver, readId } from './reader.js';

/**
 * A process of its own that reads once: `node … readerProcess.ts <url>`. It says `fetching` when it holds the lease, takes
 * the next message for what it fetched, and then says what it answered and what it holds in memory.
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
