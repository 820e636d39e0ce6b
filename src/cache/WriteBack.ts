import { StoreError } from '../stores/StoreError.js';
import type { EntryMemory } from './entryMemory.js';
import { leaseMs } from './keepLease.js';
import type { LeasedCacheOptions } from './ReadRequest.js';
import { type Entry, entryOf } from './StoredEntries.js';

const everyMs = 1000;
/** Most entries that one cache writes back each second: after an outage a whole fleet does so at once. */
const mostAtOnce = 25;

/** Writes to the store what this process fetched and the store did not take: each second while there is any, under a lease. */
export class WriteBack<Value> {
  readonly #unsaved = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: LeasedCacheOptions<Value>,
    private readonly memory: EntryMemory<Value>,
  ) {}

  has(id: string): boolean {
    return this.#unsaved.has(id);
  }

  /** Writes what memory then has under `id`. */
  later(id: string): void {
    this.#unsaved.add(id);
    this.#timer ??= setTimeout(() => void this.#work(), everyMs).unref();
  }

  async #work(): Promise<void> {
    try {
      for (const id of [...this.#unsaved].slice(0, mostAtOnce)) {
        const entry = this.memory.peek(id);
        const isDone = entry === undefined || (await this.#save(id, entry));
        this.#unsaved.delete(id);
        if (!isDone) this.#unsaved.add(id); // at the end of the line
      }
    } catch (error) {
      if (error instanceof StoreError && error.trouble === 'closed') this.#unsaved.clear();
    }
    this.#timer = undefined;
    const [next] = this.#unsaved;
    if (next !== undefined) this.later(next);
  }

  /** Whether the store now has the entry, or one that may be younger. @throws StoreError */
  async #save(id: string, entry: Entry<Value>): Promise<boolean> {
    const { store, codec, fieldOf } = this.options;
    const place = store.placeOf(fieldOf(id));
    const owner = crypto.randomUUID();
    let turn = await store.acquire(place, { owner, leaseMs });
    if (turn.state === 'found' && turn.stored.version !== entry.version) {
      const stored = entryOf(turn.stored, codec);
      if (stored !== undefined && !isFromBefore(stored, entry)) {
        if (this.memory.peek(id) === entry) this.memory.set(id, stored); // or its subject was forgotten meanwhile
        return true;
      }
      turn = await store.acquire(place, { owner, leaseMs, refused: turn.stored.version });
    }
    if (turn.state !== 'taken') return turn.state === 'found';
    const isForgotten = performance.now() - (entry.startedAt ?? entry.readAt) > turn.forgottenMs;
    return store.settle(place, owner, isForgotten ? undefined : outcomeOf(entry, this.options));
  }
}

/** Whether `stored` was fetched before the fetch of `own` began. */
export const isFromBefore = <Value>(stored: Entry<Value>, own: Entry<Value>): boolean =>
  stored.readAt < (own.startedAt ?? own.readAt);

/** How long the entry may still be kept, in milliseconds. */
export const leftMs = <Value>({ value, readAt }: Entry<Value>, { ttlMs }: LeasedCacheOptions<Value>): number =>
  ttlMs(value) - Math.max(0, performance.now() - readAt);

/** The entry as the store takes it. */
export function outcomeOf<Value>(entry: Entry<Value>, options: LeasedCacheOptions<Value>) {
  const { version, value, readAt } = entry;
  const ageMs = performance.now() - readAt;
  return { version, value: options.codec.encode(value), ageMs, ttlMs: leftMs(entry, options) };
}
