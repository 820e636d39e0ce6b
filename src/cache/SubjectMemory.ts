import { getHeapStatistics } from 'node:v8';
import { BoundedCache } from '../process/BoundedCache.js';
import { heldBytes } from './heldBytes.js';
import type { LeasedCacheOptions } from './ReadRequest.js';
import type { Entry } from './StoredEntries.js';

/** The entries of one cache in memory, the least recently used evicted first; those of one subject can be found at once. */
export class SubjectMemory<Value> extends BoundedCache<Entry<Value>> {
  readonly #idsOf = new Map<string, Set<string>>();
  readonly #fieldOf: LeasedCacheOptions<Value>['fieldOf'];

  constructor({ maxEntries, maxBytes, codec, fieldOf }: LeasedCacheOptions<Value>) {
    super({
      max: maxEntries,
      maxSize: maxBytes ?? Math.floor(getHeapStatistics().heap_size_limit / 4),
      // The size of the encoded value, because a secret hides its text. A value above `maxSize` is not kept.
      sizeCalculation: ({ value }) => heldBytes(codec.encode(value)),
      dispose: (_, id, reason) => {
        if (reason !== 'set') this.#unindex(id);
      },
    });
    this.#fieldOf = fieldOf;
  }

  keep(id: string, entry: Entry<Value>): void {
    const { subject } = this.#fieldOf(id);
    this.#idsOf.set(subject, (this.#idsOf.get(subject) ?? new Set()).add(id));
    this.set(id, entry);
    if (!this.has(id)) this.#unindex(id); // too large to keep
  }

  /** Drops the entries about `subject`; undefined: all. */
  forget(subject: string | undefined): void {
    const ids = subject === undefined ? this.keys() : (this.#idsOf.get(subject) ?? []);
    for (const id of [...ids]) this.delete(id);
  }

  #unindex(id: string): void {
    const { subject } = this.#fieldOf(id);
    const ids = this.#idsOf.get(subject);
    ids?.delete(id);
    if (ids?.size === 0) this.#idsOf.delete(subject);
  }
}
