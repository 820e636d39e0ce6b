import { describe, expect, it } from '@jest/globals';
import { realRuntime } from '../../src/process/Runtime.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { storeContract } from '../support/stores/storeContract.js';

storeContract('MemoryStore', async () => {
  let skippedMs = 0;
  const store = new MemoryStore({
    runtime: { ...realRuntime, monotonicNow: () => performance.now() + skippedMs },
  });
  return {
    open: async () => store,
    pass: async (ms) => {
      skippedMs += ms;
    },
    url: undefined,
    stop: async () => undefined,
  };
});

describe('MemoryStore', () => {
  it('holds no more entries and no more bytes than it was told', async () => {
    const few = new MemoryStore({ maxEntries: 2 });
    for (const key of ['a', 'b', 'c']) await few.set(key, Buffer.from(key), 1000);
    expect(await few.get('a')).toBeUndefined();
    expect(await few.get('c')).toEqual(Buffer.from('c'));

    const small = new MemoryStore({ maxBytes: 1000 });
    for (const key of ['a', 'b', 'c']) await small.set(key, Buffer.alloc(400), 1000);
    expect(await small.get('a')).toBeUndefined();
    expect(await small.get('c')).toHaveLength(400);
  });
});
