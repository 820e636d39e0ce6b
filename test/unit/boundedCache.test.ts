import { describe, expect, it } from '@jest/globals';
import { BoundedCache } from '../../src/process/BoundedCache.js';

describe('a bounded cache', () => {
  it('keeps to `max` entries also where the bytes of entries are bounded', () => {
    const cache = new BoundedCache<string>({ max: 3, maxSize: 10, sizeCalculation: (text) => text.length });
    for (const key of 'abcde') cache.set(key, 'x');
    expect([...cache.keys()]).toEqual(['e', 'd', 'c']);
    cache.set('f', '123456789');
    expect([...cache.keys()]).toEqual(['f', 'e']);
    cache.set('g', 'more than ten characters');
    expect(cache.has('g')).toBe(false);
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
