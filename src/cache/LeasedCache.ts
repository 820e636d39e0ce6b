import { GatewayError, isRefusalOfAnother, upstreamTimeout } from '../errors/errors.js';
import { pause } from '../process/pause.js';
import type { Place, Turn, Wish } from '../stores/Store.js';
import { StoreError } from '../stores/StoreError.js';
import { type EntryMemory, entryMemory } from './entryMemory.js';
import type { MemoryKeeper } from './Forgets.js';
import { keepLease, leaseMarginMs, leaseMs } from './keepLease.js';
import type { CacheTier, InPlace, LeasedCacheOptions, ReadReason, ReadRequest } from './ReadRequest.js';
import type { SubjectField } from './SealedStore.js';
import { decodeFailure, type Entry, encodeFailure, entryOf } from './StoredEntries.js';
import { isFromBefore, leftMs, outcomeOf, WriteBack } from './WriteBack.js';

/** Pauses between two looks at a lease that another process holds, in milliseconds: they double, with jitter. */
const firstPauseMs = 20;
const longestPauseMs = 200;
/** How long the store keeps a lease holder's failure for those who waited for the holder, in milliseconds. */
const failureTtlMs = 10_000;

const atOnce: InPlace = async (work) => work();

interface Reader<Value> extends ReadRequest<Value> {
  readonly id: string;
  readonly field: SubjectField;
  /** By the monotonic clock. */
  readonly askedAt: number;
  /** Whether the subject was forgotten during the read: the result is then not kept. */
  isForgotten: boolean;
}

/** A read in flight. */
interface Flight<Value> {
  readonly reader: { readonly field: SubjectField; isForgotten: boolean };
  readonly entry: Promise<Entry<Value>>;
}

/**
 * A read-through cache in two tiers, memory and a shared store, that fetches a value only once. In a process, all readers join
 * the read in flight. In the fleet, only the holder of the lease fetches, and the other processes wait for the value.
 * A failure is never cached: only readers that were already waiting get it, in this process and in others.
 *
 * A cold read has ten steps; the comments below number them.
 */
export class LeasedCache<Value> implements MemoryKeeper {
  readonly #memory: EntryMemory<Value>;
  readonly #flights = new Map<string, Flight<Value>>();
  /** Reads that wait for a place, by holder and id: a holder without a free place must not hold up another holder's read. */
  readonly #waiting = new Map<string, Promise<Entry<Value> | undefined>>();
  readonly #writeBack: WriteBack<Value>;
  readonly #longestHoldMs: number;

  constructor(private readonly options: LeasedCacheOptions<Value>) {
    this.#longestHoldMs = options.workMs + leaseMarginMs;
    this.#memory = entryMemory(options);
    this.#writeBack = new WriteBack(options, this.#memory);
  }

  /** Whether the entry was fetched less than `ageMs` ago. One from the future (the store's clock was set back) is not young. */
  isYoungerThan(entry: Entry<Value>, ageMs: number): boolean {
    const age = performance.now() - entry.readAt;
    return age < ageMs && age >= 0;
  }

  /** The entry in memory, of any age. */
  peek(id: string): Entry<Value> | undefined {
    return this.#memory.get(id);
  }

  /** The entry in memory when it is acceptable. */
  held(id: string, acceptable: (entry: Entry<Value>) => boolean): Entry<Value> | undefined {
    const entry = this.#memory.get(id);
    if (entry === undefined || !acceptable(entry)) return undefined;
    this.options.onRead?.(this.options.kind, 'memory', 'held');
    return entry;
  }

  /**
   * An acceptable entry: at once when memory has one. Waits for other processes for at most twice `workMs` plus the lease
   * margin.
   * @throws what the fetch threw, here or in the process that held the lease
   */
  read(id: string, request: ReadRequest<Value>): Entry<Value> | Promise<Entry<Value>> {
    // 1. Memory has an acceptable entry.
    return this.held(id, request.acceptable) ?? this.#join(id, request);
  }

  forget(isMeant: (subject: string) => boolean): void {
    const { fieldOf } = this.options;
    for (const id of [...this.#memory.keys()]) if (isMeant(fieldOf(id).subject)) this.#memory.delete(id);
    for (const [id, { reader }] of this.#flights) {
      if (!isMeant(reader.field.subject)) continue;
      reader.isForgotten = true;
      this.#flights.delete(id); // later readers start a new read
    }
  }

  /** Drops from memory the entries that have outlived their time to live in the store. */
  dropExpired(): void {
    for (const [id, entry] of [...this.#memory.entries()])
      if (leftMs(entry, this.options) <= 0) this.#memory.delete(id);
  }

  async #join(id: string, request: ReadRequest<Value>): Promise<Entry<Value>> {
    const field = this.options.fieldOf(id);
    const reader: Reader<Value> = { ...request, id, field, askedAt: performance.now(), isForgotten: false };
    // A reader without `inPlace` may hold a place already, so it must not wait for those who wait for one: '' names nobody.
    const wait = request.inPlace ? JSON.stringify([request.holder, id]) : '';
    for (;;) {
      const underway = this.#flights.get(id)?.entry ?? this.#waiting.get(wait);
      if (underway === undefined) {
        const entry = await this.#begin(reader, wait);
        if (entry !== undefined) return entry;
        continue; // another holder's reader began it meanwhile
      }
      // 2. The read is under way: its entry may be too old for this reader, its refusal may concern only the other.
      const entry = await underway.catch((error) => {
        if (!isRefusalOfAnother(error, reader.holder)) throw error;
      });
      if (entry && this.#willDo(entry, reader)) return entry;
    }
  }

  /** 3. Registers a read once there is a place for it; undefined when one is under way by then. */
  #begin(reader: Reader<Value>, wait: string): Promise<Entry<Value> | undefined> {
    const { id, inPlace = atOnce } = reader;
    let hasPlace = false;
    const read = inPlace(() => {
      hasPlace = true;
      const hasWaited = this.#waiting.delete(wait);
      const held = hasWaited ? this.held(id, (entry) => this.#willDo(entry, reader)) : undefined;
      if (held !== undefined || this.#flights.has(id)) return held;
      const entry = this.#load(reader).finally(() => {
        if (!reader.isForgotten) this.#flights.delete(id);
      });
      this.#flights.set(id, { reader, entry });
      return entry;
    });
    if (!hasPlace) this.#waiting.set(wait, read);
    read.catch(() => hasPlace || this.#waiting.delete(wait)); // no place came free in time
    return read;
  }

  /** Asks the store until it answers, or this reader may fetch. */
  async #load(reader: Reader<Value>): Promise<Entry<Value>> {
    const reason = this.#memory.has(reader.id) ? 'outdated' : 'absent';
    const startedAt = performance.now();
    const owner = crypto.randomUUID();
    const place = this.options.store.placeOf(reader.field);
    let refused: string | undefined;
    let awaited: string | undefined;
    for (let pauseMs = firstPauseMs; ; ) {
      const turn = await this.#acquire(place, { owner, leaseMs, refused, awaited });
      switch (turn.state) {
        case 'found': {
          // 4. The store has an entry. Memory keeps an old one too: it can be shown when the service fails.
          const stored = entryOf(turn.stored, this.options.codec);
          const entry = stored && this.#keepStored(reader, stored);
          const tier = awaited === undefined ? 'store' : 'waited';
          if (entry && this.#willDo(entry, reader)) return this.#answer(entry, tier, reason);
          refused = turn.stored.version;
          break;
        }
        case 'failed': {
          // 5. The holder that this reader waited for has failed.
          const failure = decodeFailure(turn.failure);
          if (failure !== undefined) throw failure;
          awaited = undefined;
          break;
        }
        case 'held':
          // 6. Another process reads it.
          awaited = turn.owner;
          if (performance.now() - startedAt > this.#longestHoldMs + this.options.workMs) throw upstreamTimeout();
          await pause(pauseMs * (0.5 + Math.random() / 2));
          pauseMs = Math.min(2 * pauseMs, longestPauseMs);
          break;
        default:
          return this.#answer(await this.#work(reader, place, owner), 'fetched', reason);
      }
    }
  }

  /** `alone`: the store does not answer, or cannot give a lease. */
  async #acquire(place: Place, wish: Wish): Promise<Turn<unknown, unknown> | { readonly state: 'alone' }> {
    try {
      return await this.options.store.acquire(place, wish);
    } catch (error) {
      if (error instanceof StoreError && error.trouble !== 'closed') return { state: 'alone' };
      throw error;
    }
  }

  /** Fetches, then writes the result and releases the lease: also without an answer it may have been granted. */
  async #work(reader: Reader<Value>, place: Place, owner: string): Promise<Entry<Value>> {
    const { store } = this.options;
    // 7. Nobody else reads it, or the store cannot tell.
    const letGo = keepLease(store, place, owner, this.#longestHoldMs);
    try {
      const entry = await this.#fetch(reader);
      // 8. The store takes it, or (10) is asked again each second.
      this.#keep(reader, entry);
      const isSaved = await store.settle(place, owner, outcomeOf(entry, this.options)).catch(() => false);
      if (!isSaved) this.#writeBack.later(reader.id);
      return entry;
    } catch (error) {
      // 9. Those who wait share the failure; not a refusal that concerns one caller alone.
      const isShared = error instanceof GatewayError && error.onlyFor === undefined;
      const outcome = isShared ? { failure: encodeFailure(error), ttlMs: failureTtlMs } : undefined;
      await store.settle(place, owner, outcome).catch(() => undefined);
      throw error;
    } finally {
      letGo();
    }
  }

  async #fetch({ fetch }: Reader<Value>): Promise<Entry<Value>> {
    const startedAt = performance.now();
    const value = await fetch(startedAt + this.options.workMs);
    const version = crypto.randomUUID();
    return { version, value, readAt: performance.now(), fetchedAt: Date.now(), startedAt };
  }

  #willDo(entry: Entry<Value>, reader: Reader<Value>): boolean {
    if (reader.acceptable(entry)) return true;
    return reader.takesFetchedMeanwhile === true && entry.readAt >= reader.askedAt && entry.readAt <= performance.now();
  }

  #answer(entry: Entry<Value>, tier: CacheTier, reason: ReadReason): Entry<Value> {
    this.options.onRead?.(this.options.kind, tier, reason);
    return entry;
  }

  /** Of equal versions memory keeps its own, which has the readers' views; otherwise the store knows better. */
  #keepStored(reader: Reader<Value>, stored: Entry<Value>): Entry<Value> {
    const held = this.#memory.get(reader.id);
    if (held?.version === stored.version) return held;
    const isWorse = held !== undefined && this.#writeBack.has(reader.id) && isFromBefore(stored, held);
    if (!isWorse) this.#keep(reader, stored);
    return stored;
  }

  #keep({ id, isForgotten }: Reader<Value>, entry: Entry<Value>): void {
    if (!isForgotten) this.#memory.set(id, entry);
  }
}
