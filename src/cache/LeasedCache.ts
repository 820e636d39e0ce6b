import { GatewayError, isRefusalOfAnother, upstreamTimeout } from '../errors/errors.js';
import { BoundedCache, heldBytes, ownText } from '../process/memory.js';
import { pause } from '../process/pause.js';
import type { Place } from '../stores/Store.js';
import { goOnAlone, StoreError } from '../stores/StoreError.js';
import {
  ageMsOf,
  decodeFailure,
  type Entry,
  encodeFailure,
  entryOf,
  isYoungerThan,
  type LeasedCacheOptions,
  type ReadRequest,
} from './Entry.js';
import { knownForMs, type MemoryKeeper } from './Forgets.js';

/** How long a lease lasts without renewal, in milliseconds. Others wait this long for an owner that died. */
const leaseMs = 3000;
const renewEveryMs = 1000; // one renewal may be lost, and the next one late
/** Added to the time that others wait for the work of an owner, in milliseconds, for slow timers and a paused event loop. */
export const leaseMarginMs = 2000;
/** Pause between two looks at a lease that another process holds, in milliseconds: less with jitter. */
const lookEveryMs = 100;

/** Least pause before an entry that the store did not take is offered again, in milliseconds; longer if more of them wait. */
const saveAgainMs = 1000;
// docs/token-broker.md states the double of the next two numbers, because a process has two caches.
/** Most entries that a cache offers again each second: after an outage a whole fleet does so at once. */
const mostSavesPerSecond = 25;
/** Most entries that wait for that. One that finds no room is not shared: another process has to read it itself. */
const mostUnsaved = 10_000;

/** Bytes of an entry besides its id and value: of its version, times, view and place in the cache. Measured: 640 to 760. */
const entryBytes = 700;

/** A random id. It is copied, because `randomUUID` makes it of parts that take 490 bytes in memory. */
const newId = (): string => ownText(crypto.randomUUID());

interface Reader<Value> extends Pick<ReadRequest<Value>, 'acceptable' | 'holder'> {
  readonly id: string;
  /** Names the reader as the owner of the lease that it takes. */
  readonly owner: string;
  readonly fetch: () => Promise<Entry<Value>>;
  /** Whether memory may keep the result: not if the subject was forgotten during the read. */
  readonly mayKeep: () => boolean;
}

/**
 * A read-through cache in two tiers, memory and a shared store, that fetches a value only once. In a process, all readers join
 * the read in flight. In the fleet, only the owner of the lease fetches, and the other processes wait for the value.
 * A failure is never cached: only readers that were already waiting get it, in this process and in others.
 *
 * A cold read has ten steps; the comments below number them.
 */
export class LeasedCache<Value> implements MemoryKeeper {
  /** The least recently used is evicted first. A value above the bound in bytes is not kept. */
  readonly #memory: BoundedCache<Entry<Value>>;
  /** The reads in flight. */
  readonly #flights = new Map<string, Promise<Entry<Value>>>();
  /** The ids of entries that wait to be offered to the store again. */
  readonly #unsaved = new Set<string>();

  constructor(private readonly options: LeasedCacheOptions<Value>) {
    this.#memory = new BoundedCache({ max: options.memoryBytes });
  }

  /** The entry in memory, of any age. It counts as used. */
  inMemory(id: string): Entry<Value> | undefined {
    return this.#memory.get(id);
  }

  /** The entry in memory when it is acceptable. */
  held(id: string, acceptable: (entry: Entry<Value>) => boolean): Entry<Value> | undefined {
    const entry = this.#memory.get(id);
    if (entry === undefined || !acceptable(entry)) return undefined;
    this.options.onRead(this.options.kind, 'memory');
    return entry;
  }

  /**
   * Returns an acceptable entry. Waits for other processes at most twice `workMs` plus {@link leaseMarginMs}.
   * @throws what the fetch threw, here or in the process that held the lease; UPSTREAM_TIMEOUT when that wait is over
   */
  async read(id: string, request: ReadRequest<Value>): Promise<Entry<Value>> {
    const { holder, hasPlace } = request;
    // 1. Memory has an acceptable entry.
    const held = this.held(id, request.acceptable);
    if (held !== undefined) return held;
    const askedAt = performance.now();
    // The second condition: after the store's clock was set back, an entry may come from the future.
    const isFetchedMeanwhile = ({ readAt }: Entry<Value>) => readAt >= askedAt && readAt <= performance.now();
    const acceptable = (entry: Entry<Value>) => request.acceptable(entry) || isFetchedMeanwhile(entry);
    const wanted = { id, holder, owner: newId(), acceptable, fetch: () => this.#fetch(request) };
    const begin = () => this.#begin(wanted);
    for (;;) {
      const underWay = this.#flights.get(id);
      if (underWay === undefined) {
        const entry = await (hasPlace ? begin() : this.options.calls.run(holder, begin));
        if (entry !== undefined) return entry;
        continue; // another reader has begun a read meanwhile
      }
      // 2. Wait for the read in flight, then look again: its entry may be too old for this reader, and a refusal may
      // concern only the reader that began it.
      const entry = await underWay.catch((error) => {
        if (!isRefusalOfAnother(error, holder)) throw error;
      });
      if (entry && acceptable(entry)) return entry;
    }
  }

  /** Drops from memory the entries that have outlived their time to live in the store. */
  dropExpired(): void {
    this.#memory.purgeStale();
  }

  forget(isMeant: (subject: string) => boolean): void {
    const { idsOf } = this.options;
    for (const known of [this.#memory, this.#flights]) {
      // Without its flight, a read keeps no result, and later readers start a new one.
      for (const id of [...known.keys()]) if (isMeant(idsOf(id)[0])) known.delete(id);
    }
  }

  /** 3. Registers and starts the read of a reader that has got its place. Undefined when another read is in flight by then. */
  #begin(wanted: Omit<Reader<Value>, 'mayKeep'>): Entry<Value> | Promise<Entry<Value>> | undefined {
    const { id } = wanted;
    const held = this.held(id, wanted.acceptable); // memory may have got one during the wait for a place
    if (held !== undefined || this.#flights.has(id)) return held;
    const mayKeep = () => this.#flights.get(id) === flight;
    const flight = this.#load({ ...wanted, mayKeep }).finally(() => {
      if (mayKeep()) this.#flights.delete(id);
    });
    this.#flights.set(id, flight);
    return flight;
  }

  /** Asks the store again and again until it gives an acceptable entry, the failure of another process, or the lease. */
  async #load(reader: Reader<Value>): Promise<Entry<Value>> {
    const { store, codec, workMs, idsOf, kind, onRead } = this.options;
    const waitsUntil = performance.now() + 2 * workMs + leaseMarginMs;
    const place = store.placeOf(kind, ...idsOf(reader.id));
    // An entry that memory has and the reader does not accept need not come from the store again.
    const held = this.#memory.peek(reader.id);
    let refused = held && !reader.acceptable(held) ? held.version : undefined;
    let awaited: string | undefined;
    const ask = () => store.acquire(place, { owner: reader.owner, leaseMs, refused, awaited });
    for (;;) {
      let acquired = (await ask().catch(goOnAlone)) ?? alone;
      // A store that gives the refused entry again, or a failure that nobody waited for, is at fault: go on as if it had not
      // answered.
      if (acquired.state === 'found' && acquired.stored.version === refused) acquired = alone;
      if (acquired.state === 'failed' && awaited === undefined) acquired = alone;
      switch (acquired.state) {
        case 'found': {
          // 4. The store has an entry. Memory keeps an old one too: it can be shown when the service fails.
          const stored = entryOf(acquired.stored, codec);
          const entry = stored && this.#keepStored(reader, stored);
          if (entry && reader.acceptable(entry)) {
            onRead(kind, awaited === undefined ? 'store' : 'waited');
            return entry;
          }
          refused = acquired.stored.version;
          break;
        }
        case 'failed': {
          // 5. The owner that this reader waited for has failed.
          const failure = decodeFailure(acquired.failure);
          if (failure !== undefined) throw failure;
          awaited = undefined; // a failure that cannot be read: ask for the lease
          break;
        }
        case 'held':
          // 6. Another process holds the lease.
          awaited = acquired.owner;
          if (performance.now() > waitsUntil) throw upstreamTimeout();
          await pause(lookEveryMs * (0.5 + Math.random() / 2));
          break;
        case 'taken':
          return this.#work(reader, place, ask, acquired.now - performance.now());
      }
    }
  }

  /** Fetches, then writes the result and releases the lease. `aheadMs` as for `#outcomeOf`. */
  async #work(
    reader: Reader<Value>,
    place: Place,
    renew: () => Promise<unknown>,
    aheadMs: number,
  ): Promise<Entry<Value>> {
    const { store } = this.options;
    const { owner } = reader;
    const release = (failure?: object) => store.settle(place, owner, { failure }).catch(() => undefined);
    // 7. This process has the lease, or the store does not answer. Losing the lease does not end the work.
    const renewing = setInterval(() => renew().catch(() => undefined), renewEveryMs).unref();
    try {
      const entry = await reader.fetch().finally(() => clearInterval(renewing));
      // 8. Write the entry and release the lease: even a store that did not answer may have granted it. `isSaved` is false if this
      // process does not have the lease, or the store does not take the entry.
      const isSaved = await store.settle(place, owner, this.#outcomeOf(entry, aheadMs)).catch(() => false);
      this.#keep(reader, entry);
      if (!isSaved) {
        // A Redis that is nearly full may have taken the lease and refuse the entry: others must not wait for that.
        void release();
        void this.#saveLater(reader.id, owner);
      }
      return entry;
    } catch (error) {
      // 9. Leave the failure for those who wait, unless it is a bug or a refusal that concerns one caller alone.
      const isShared = error instanceof GatewayError && error.onlyFor === undefined;
      await release(isShared ? encodeFailure(error) : undefined);
      throw error;
    }
  }

  async #fetch({ fetch }: ReadRequest<Value>): Promise<Entry<Value>> {
    const startedAt = performance.now();
    const value = await fetch(startedAt + this.options.workMs);
    this.options.onRead(this.options.kind, 'fetched');
    const version = newId();
    return { version, value, readAt: performance.now(), fetchedAt: Date.now(), startedAt };
  }

  /**
   * 10. Offers the store, again and again, an entry that it did not take, while memory has the entry, under the lease that may
   * still exist. An old entry is not offered: the store may no longer know that its subject was forgotten since.
   */
  async #saveLater(id: string, owner: string): Promise<void> {
    if (this.#unsaved.has(id) || this.#unsaved.size === mostUnsaved) return;
    this.#unsaved.add(id);
    await pause(Math.max(saveAgainMs, (1000 * this.#unsaved.size) / mostSavesPerSecond));
    this.#unsaved.delete(id);
    const own = this.#memory.peek(id);
    if (own === undefined || !isYoungerThan(own, knownForMs)) return;
    // Takes from the store an entry that was not fetched before the own one; given the lease, writes the own one.
    const acceptable = (stored: Entry<Value>) => stored.version === own.version || stored.readAt >= own.startedAt;
    const mayKeep = () => this.#memory.peek(id) === own;
    await this.#load({ id, owner, acceptable, mayKeep, fetch: async () => own }).catch((error) => {
      // Again, where another process held the lease for too long or failed. A StoreError comes only from a closed store.
      if (!(error instanceof StoreError)) void this.#saveLater(id, owner);
    });
  }

  /**
   * Keeps the store's entry, unless memory has one that was fetched later, or the same version: that object is returned, because
   * each object is translated only once.
   */
  #keepStored(reader: Reader<Value>, stored: Entry<Value>): Entry<Value> {
    const held = this.#memory.get(reader.id);
    if (held?.version === stored.version) return held;
    if (held === undefined || stored.readAt >= held.startedAt) this.#keep(reader, stored);
    return stored;
  }

  #keep({ id, holder, mayKeep }: Reader<Value>, entry: Entry<Value>): void {
    const { codec, onKept, onBytes } = this.options;
    if (!mayKeep() || this.#memory.peek(id)?.version === entry.version) return;
    // The size of the encoded value, because a secret hides its text.
    const size = entryBytes + heldBytes(id) + heldBytes(codec.encode(entry.value));
    this.#memory.set(id, entry, { ttl: this.#leftMs(entry), size });
    onBytes?.(holder, size);
    onKept(id, entry);
  }

  /** The entry as the store takes it. `aheadMs` is at most how far the store's clock is ahead of the monotonic one. */
  #outcomeOf(entry: Entry<Value>, aheadMs: number) {
    const { version, value, readAt, fetchedAt, startedAt } = entry;
    return {
      version,
      value: [fetchedAt, this.options.codec.encode(value)],
      ageMs: performance.now() - readAt,
      begunAt: startedAt + aheadMs,
      ttlMs: this.#leftMs(entry),
    };
  }

  /** How long the entry may still be kept, in milliseconds. */
  #leftMs(entry: Entry<Value>): number {
    return this.options.ttlMs(entry.value) - ageMsOf(entry);
  }
}

/**
 * Without the store, the reader goes on as if it had the lease. The store's time is unknown, so the work counts as begun before
 * anything was forgotten.
 */
const alone = { state: 'taken', now: 0 } as const;
