import { getHeapStatistics } from 'node:v8';
import { GatewayError, isRefusalOfAnother, upstreamTimeout } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import { pause } from '../process/pause.js';
import { heldBytes } from './heldBytes.js';
import { type KeptLease, keepLease, leaseMarginMs, leaseMs } from './keepLease.js';
import type { EntryName } from './OneKeyStore.js';
import type { CacheTier, InPlace, LeasedCacheOptions, ReadReason, ReadRequest } from './ReadRequest.js';
import { decodeEntry, decodeFailure, type Entry, encodeEntry, encodeFailure } from './StoredEntries.js';

/** Pauses between two looks at a lease that another process holds, in milliseconds: they double, with jitter. */
const firstPauseMs = 20;
const longestPauseMs = 200;
/** How long the store keeps a lease holder's failure for those who waited for the holder, in milliseconds. */
const failureTtlMs = 10_000;

const atOnce: InPlace = async (work) => work();

interface Reader<Value> extends ReadRequest<Value> {
  readonly id: string;
  readonly name: EntryName;
  /** Epoch milliseconds. */
  readonly askedAt: number;
  /** Whether the subject was forgotten during the read: the result is then not kept. */
  isForgotten: boolean;
}

interface Fetched<Value> {
  readonly fetched: Entry<Value>;
  readonly lease: KeptLease;
  /** When the fetch began, in epoch milliseconds. */
  readonly beganAt: number;
  /** The stored bytes that the reader had refused by then, if any. */
  readonly before: Buffer | undefined;
}

/** A read in flight. */
interface Flight<Value> {
  readonly reader: { isForgotten: boolean };
  readonly entry: Promise<Entry<Value>>;
}

/**
 * A read-through cache in two tiers, memory and a shared store, that fetches a value only once. In a process, all readers join
 * the read in flight. In the fleet, only the holder of the lease fetches, and the other processes wait for the value.
 * A failure is never cached: only readers that were already waiting get it, in this process and in others.
 */
export class LeasedCache<Value> {
  readonly #memory: BoundedCache<Entry<Value>>;
  readonly #flights = new Map<string, Flight<Value>>();
  /** Reads that wait for a place, by holder and id: a holder without a free place must not hold up another holder's read. */
  readonly #waiting = new Map<string, Promise<Entry<Value> | undefined>>();
  readonly #subjectOf: (id: string) => string;
  readonly #longestHoldMs: number;
  readonly #skewMs: number;

  constructor(private readonly options: LeasedCacheOptions<Value>) {
    this.#subjectOf = options.subjectOf ?? ((id) => id);
    this.#longestHoldMs = options.workMs + leaseMarginMs;
    this.#skewMs = options.skewMs ?? 1000;
    this.#memory = new BoundedCache({
      max: options.maxEntries,
      maxSize: options.maxBytes ?? Math.floor(getHeapStatistics().heap_size_limit / 4),
      // The size of the encoded value, because a secret hides its text. A value above `maxSize` is returned, but not cached.
      sizeCalculation: ({ value }) => heldBytes(options.codec.encode(value)),
    });
  }

  /** Whether the entry was fetched less than `ageMs` ago. One dated in the future, beyond clock skew, is never young. */
  isYoungerThan(entry: Entry<Value>, ageMs: number): boolean {
    const age = Date.now() - entry.fetchedAt;
    return age < ageMs && age >= -this.#skewMs;
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
    return this.held(id, request.acceptable) ?? this.#join(id, request);
  }

  /** Drops what memory holds about `subject` (default: everything), and keeps no result of the reads in flight about it. */
  forget(subject?: string): void {
    const isMeant = (id: string) => subject === undefined || this.#subjectOf(id) === subject;
    for (const id of [...this.#memory.keys()].filter(isMeant)) this.#memory.delete(id);
    for (const [id, { reader }] of this.#flights) {
      if (!isMeant(id)) continue;
      reader.isForgotten = true;
      this.#flights.delete(id); // later readers start a new read
    }
  }

  /** Drops from memory the entries that have outlived their time to live in the store. */
  dropExpired(): void {
    for (const [id, { value, fetchedAt }] of [...this.#memory.entries()]) {
      if (Date.now() - fetchedAt >= this.options.ttlMs(value)) this.#memory.delete(id);
    }
  }

  async #join(id: string, request: ReadRequest<Value>): Promise<Entry<Value>> {
    const parts = [this.options.kind, id];
    const name = this.options.subjectOf ? { subject: this.#subjectOf(id), parts } : parts;
    const reader = { ...request, id, name, askedAt: Date.now(), isForgotten: false };
    // A reader without `inPlace` may hold a place already, so it must not wait for those who wait for one: '' names nobody.
    const wait = request.inPlace ? JSON.stringify([request.holder, id]) : '';
    for (;;) {
      const underway = this.#flights.get(id)?.entry ?? this.#waiting.get(wait);
      if (underway === undefined) {
        const entry = await this.#begin(reader, wait);
        if (entry !== undefined) return entry;
        continue; // another holder's reader began it meanwhile
      }
      // Another reader started this read: its entry may be too old for this reader, its refusal may concern only the other.
      const entry = await underway.catch((error) => {
        if (!isRefusalOfAnother(error, reader.holder)) throw error;
      });
      if (entry && this.#willDo(entry, reader)) {
        reader.trail?.read('shared');
        return entry;
      }
    }
  }

  /** Begins a read once there is a place for it; undefined when one is under way by then. */
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

  async #load(reader: Reader<Value>): Promise<Entry<Value>> {
    const { id, name } = reader;
    const { store, codec, workMs } = this.options;
    const reason = this.#memory.has(id) ? 'outdated' : 'absent';
    let refused: Buffer | undefined;
    let before = this.peek(id);
    // By a monotonic clock: correcting a wall clock would end or prolong the wait.
    const patienceEndsAt = performance.now() + this.#longestHoldMs + workMs;
    while (performance.now() < patienceEndsAt) {
      const owner = crypto.randomUUID();
      const turn = await store.acquire(name, owner, leaseMs, refused);
      if (turn.state === 'held') {
        const brought = await this.#waitForOwner(reader, turn.owner, patienceEndsAt);
        if (brought !== undefined) return this.#remember(brought, reader, 'waited', reason);
      } else if (turn.state === 'found') {
        refused = turn.entry.bytes;
        const stored = decodeEntry(turn.entry.value, codec);
        // Memory keeps even an unacceptable entry: it can be shown when the service fails.
        const entry = stored && this.#keepNewer(reader, stored);
        if (entry && this.#willDo(entry, reader)) return this.#remember(entry, reader, 'store', reason);
        before = this.peek(id) ?? entry ?? before; // memory may evict it before the fetch
      } else {
        const lease = keepLease({ store, name, owner, longestMs: this.#longestHoldMs });
        try {
          const beganAt = Date.now();
          const fetched = await this.#fetch(reader, before);
          return await this.#publish(reader, owner, { fetched, lease, beganAt, before: refused });
        } catch (error) {
          // A refusal that concerns one caller alone is not shared.
          const isShared = error instanceof GatewayError && error.onlyFor === undefined;
          if (isShared) await store.fail(name, encodeFailure(error), failureTtlMs, owner);
          else await store.release(name, owner);
          throw error;
        } finally {
          lease.letGo();
        }
      }
    }
    throw upstreamTimeout();
  }

  async #fetch(reader: Reader<Value>, before?: Entry<Value>) {
    const { id, fetch, trail } = reader;
    const work = new AbortController();
    const timer = setTimeout(() => work.abort(), this.options.workMs);
    const startedAt = performance.now();
    try {
      const value = await fetch(work.signal, before);
      const version = crypto.randomUUID();
      const entry: Entry<Value> = { version, value, fetchedAt: Date.now(), startedAt };
      const reason = this.#memory.has(id) ? 'outdated' : 'absent';
      this.#keep(reader, entry); // also over one with a later time: the clock that wrote it may have been ahead
      this.options.onRead?.(this.options.kind, 'fetched', reason);
      trail?.read('fetched');
      return entry;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Writes the fetched entry and releases the lease. A process that lost the lease must not overwrite what the next holder
   * wrote: it takes the lease again, and writes only when the store has nothing newer than `before`.
   */
  async #publish(reader: Reader<Value>, owner: string, work: Fetched<Value>) {
    const { fetched, lease, beganAt, before } = work;
    const { store, codec, ttlMs, mayHaveForgotten } = this.options;
    const { id, name } = reader;
    const settle = () => store.settle(name, encodeEntry(fetched, codec), ttlMs(fetched.value), owner);
    if (!lease.isLost && (await settle())) return fetched; // while the store is down, `settle` cannot see a lost lease
    let turn = await store.acquire(name, owner, leaseMs, before);
    // An entry from before the fetch, missed while the store could not be read or this process was paused, is overwritten.
    if (turn.state === 'found' && this.#isFromBefore(turn.entry.value, beganAt)) {
      turn = await store.acquire(name, owner, leaseMs, turn.entry.bytes);
    }
    if (turn.state === 'taken') {
      // An erasure may have ended the lost lease. Checked under the new lease, which an erasure that begins now ends too.
      const isForgotten = reader.isForgotten || (await mayHaveForgotten?.(this.#subjectOf(id), reader.askedAt));
      await (isForgotten ? store.release(name, owner) : settle());
    }
    const newer = turn.state === 'found' ? decodeEntry(turn.entry.value, codec) : undefined;
    if (newer === undefined || !this.#willDo(newer, reader)) return fetched;
    this.#keep(reader, newer);
    return newer;
  }

  /** Waits until `owner` releases the lease or must be dead. Returns any acceptable entry. @throws the owner's failure */
  async #waitForOwner(reader: Reader<Value>, owner: Buffer, until: number) {
    const { name } = reader;
    const { store, codec, kind, onLeaseWait } = this.options;
    const waitedFrom = performance.now();
    // No work lasts longer: this lease is forged, or the store's clock is wrong. Left alone, it would block every reader.
    const deadAt = waitedFrom + this.#longestHoldMs;
    let pauseMs = firstPauseMs;
    do {
      const leftMs = deadAt - performance.now();
      if (leftMs <= 0) {
        await store.release(name, owner);
        break;
      }
      const jitter = 0.5 + Math.random() / 2;
      await pause(Math.min(pauseMs * jitter, leftMs, until - performance.now()));
      pauseMs = Math.min(2 * pauseMs, longestPauseMs);
    } while (performance.now() < until && (await store.leaseOwner(name))?.equals(owner));
    onLeaseWait?.(kind, (performance.now() - waitedFrom) / 1000);
    const stored = decodeEntry((await store.find(name))?.value, codec);
    const entry = stored && this.#keepNewer(reader, stored);
    if (entry && this.#willDo(entry, reader)) return entry;
    const failure = decodeFailure(await store.failureOf(name, owner.toString()));
    if (failure !== undefined) throw failure;
    return undefined;
  }

  #willDo(entry: Entry<Value>, reader: Reader<Value>): boolean {
    if (reader.acceptable(entry)) return true;
    return reader.takesFetchedMeanwhile === true && entry.fetchedAt >= reader.askedAt && !this.#isOfWrongClock(entry);
  }

  /** Whether the stored entry was surely fetched before `beganAt`, although another machine's clock may have dated it. */
  #isFromBefore(stored: unknown, beganAt: number): boolean {
    return (decodeEntry(stored, this.options.codec)?.fetchedAt ?? Infinity) + this.#skewMs < beganAt;
  }

  /** Whether the entry is dated further ahead of our clock than clock skew allows. */
  #isOfWrongClock({ fetchedAt }: Entry<Value>): boolean {
    return fetchedAt - Date.now() > this.#skewMs;
  }

  /** Replaces an unacceptable entry in memory by an acceptable one, without comparing times: the machines' clocks differ. */
  #remember(entry: Entry<Value>, reader: Reader<Value>, tier: CacheTier, reason: ReadReason) {
    const held = this.#memory.get(reader.id);
    if (held !== undefined && !this.#willDo(held, reader)) this.#keep(reader, entry);
    this.options.onRead?.(this.options.kind, tier, reason);
    reader.trail?.read(tier);
    return entry;
  }

  /** Keeps the newer of `stored` and the entry in memory. Of equal versions, the latter: it has the readers' views. */
  #keepNewer(reader: Reader<Value>, stored: Entry<Value>): Entry<Value> {
    const held = this.#memory.get(reader.id);
    if (held?.version === stored.version) return held;
    const isNewer = held === undefined || held.fetchedAt <= stored.fetchedAt || this.#isOfWrongClock(held);
    if (isNewer) this.#keep(reader, stored);
    return stored;
  }

  #keep({ id, isForgotten }: Reader<Value>, entry: Entry<Value>): void {
    if (!isForgotten) this.#memory.set(id, entry);
  }
}
