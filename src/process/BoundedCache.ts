import { LRUCache } from 'lru-cache';

type Thing = NonNullable<unknown>;

/** An LRU cache of at most `max` entries that allocates memory as it fills. lru-cache's own `max` allocates all at once. */
export class BoundedCache<Value extends Thing, Key extends Thing = string> extends LRUCache<Key, Value> {
  readonly #max: number;

  constructor({ max, ...options }: LRUCache.Options<Key, Value, unknown> & { readonly max: number }) {
    super({ maxSize: max, sizeCalculation: () => 1, ...options } as LRUCache.Options<Key, Value, unknown>);
    this.#max = max;
  }

  override set(key: Key, value: Value | undefined, options?: LRUCache.SetOptions<Key, Value, unknown>): this {
    super.set(key, value, options);
    if (this.size > this.#max) this.pop();
    return this;
  }
}
