import { describe, expect, it } from '@jest/globals';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { real, replacePlatform, restorePlatform } from '../support/platform.js';
import { storeContract } from './storeContract.js';

storeContract('MemoryStore', async () => {
  let skippedMs = 0;
  replacePlatform(() => ({ monotonicNow: () => real.monotonicNow() + skippedMs }));
  const store = new MemoryStore();
  return {
    open: async () => store,
    pass: async (ms) => {
      skippedMs += ms;
    },
    url: undefined,
    stop: async () => restorePlatform(),
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
