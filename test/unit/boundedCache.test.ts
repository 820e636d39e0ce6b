import { describe, expect, it } from '@jest/globals';
import { BoundedCache } from '../../src/process/BoundedCache.js';

describe('a bounded cache', () => {
  it('drops what was used longest ago when it has more than `max` entries, and says so', () => {
    const dropped: unknown[] = [];
    const cache = new BoundedCache<number>({ max: 2, dispose: (value, key, why) => dropped.push([key, value, why]) });
    cache.set('a', 1).set('b', 2);
    cache.get('a');
    cache.set('c', 3);
    expect([...cache.entries()]).toEqual([
      ['c', 3],
      ['a', 1],
    ]);
    expect(dropped).toEqual([['b', 2, 'evict']]);
  });

  it('keeps to `max` entries also where the bytes of entries are bounded', () => {
    const cache = new BoundedCache<string>({ max: 3, maxSize: 10, sizeCalculation: (text) => text.length });
    for (const key of 'abcde') cache.set(key, 'x');
    expect([...cache.keys()]).toEqual(['e', 'd', 'c']);
    cache.set('f', '123456789');
    expect([...cache.keys()]).toEqual(['f', 'e']);
    cache.set('g', 'more than ten characters');
    expect(cache.has('g')).toBe(false);
  });

  it('makes what is missing by `memoMethod`, within its bound', () => {
    const cache = new BoundedCache<string>({ max: 2, memoMethod: (key) => `made for ${key}` });
    for (const key of 'abc') expect(cache.memo(key)).toBe(`made for ${key}`);
    expect(cache.size).toBe(2);
  });

  it('takes no memory for entries that it does not have', () => {
    const before = process.memoryUsage();
    const caches = Array.from({ length: 10 }, () => new BoundedCache<number>({ max: 10_000_000 }).set('a', 1));
    const after = process.memoryUsage();
    const taken = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
    expect(taken).toBeLessThan(1e6);
    expect(caches.map((cache) => cache.get('a'))).toEqual(Array(10).fill(1));
  });
});
