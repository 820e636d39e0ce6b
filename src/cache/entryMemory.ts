import { getHeapStatistics } from 'node:v8';
import { BoundedCache } from '../process/BoundedCache.js';
import { heldBytes } from './heldBytes.js';
import type { LeasedCacheOptions } from './ReadRequest.js';
import type { Entry } from './StoredEntries.js';

export type EntryMemory<Value> = BoundedCache<Entry<Value>>;

/** The entries of one cache in memory, the least recently used evicted first. */
export function entryMemory<Value>({ maxEntries, maxBytes, codec }: LeasedCacheOptions<Value>): EntryMemory<Value> {
  return new BoundedCache({
    max: maxEntries,
    maxSize: maxBytes ?? Math.floor(getHeapStatistics().heap_size_limit / 4),
    // The size of the encoded value, because a secret hides its text. A value above `maxSize` is not kept.
    sizeCalculation: ({ value }) => heldBytes(codec.encode(value)),
  });
}
