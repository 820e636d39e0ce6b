import { randomUUID } from 'node:crypto';
import { getHeapStatistics } from 'node:v8';
import { LRUCache } from 'lru-cache';
import { GatewayError, isRefusalOfAnother, upstreamTimeout } from '../errors/errors.js';
import { heldBytes } from './heldBytes.js';
import type { EntryName, SealedStore } from './SealedStore.js';
import { type Codec, decodeEntry, decodeFailure, type Entry, encodeEntry, encodeFailure } from './StoredEntries.js';

export interface ReadRequest<Value, Prepared = undefined> {
  /** Whether an entry will do. */
  readonly acceptable: (entry: Entry<Value>) => boolean;
  /** Whether one will do as well that was fetched since the reader asked. */
  readonly takesFetchedMeanwhile?: boolean;
  /** What the fetch needs. When it takes long the lease is given back and taken again. */
  readonly prepare?: () => Promise<Prepared> | Prepared;
  /** Asks the service. `signal` aborts when the work has to end; `before` is the newest entry known, which would not do. */
  readonly fetch: (prepared: Prepared, signal: AbortSignal, before?: Entry<Value>) => Promise<Value>;
  /** Who reads; a refusal of another holder is not shared with this one. */
  readonly holder?: string | undefined;
}

export type CacheTier = 'memory' | 'store' | 'fetched' | 'waited';

/** What memory had: an acceptable entry, none, or one that is too old or refused. */
export type ReadReason = 'held' | 'absent' | 'outdated';

export interface LeasedCacheOptions<Value> {
  readonly store: SealedStore;
  readonly codec: Codec<Value>;
  /** How long the store keeps a value, in milliseconds. */
  readonly ttlMs: (value: Value) => number;
  /** First part of every name, and the label of metrics. */
  readonly kind: string;
  readonly maxEntries: number;
  /** Most memory the entries take, in bytes by {@link heldBytes}. Default: a quarter of what the heap may grow to. */
  readonly maxBytes?: number;
  /** Longest the work under the lease may take, in milliseconds. The lease is renewed for as long and a little longer. */
  readonly workMs: number;
  /** How far two clocks of the fleet may be apart, in milliseconds. Default 1000. */
  readonly skewMs?: number;
  readonly now?: () => number;
  readonly onRead?: (kind: string, tier: CacheTier, reason: ReadReason) => void;
  readonly onLeaseWait?: (kind: string, seconds: number) => void;
}

/** How long a lease lasts unless its holder renews it, in milliseconds: others wait as long for a holder that died. */
export const leaseMs = 3000;
const renewEveryMs = 1000; // two renewals in a row may be late or lost
/** How much longer than its work a holder may keep the lease, in milliseconds: slow timers, a paused event loop. */
export const leaseMarginMs = 2000;
/** A preparation that takes longer does not leave the lease long enough for the work, in milliseconds. */
const quickMs = 500;
const lookAgainMs = 1000; // longest time between two looks at the store while another process holds the lease
/** How long the failure of a lease holder can be read by those who waited for it, in milliseconds. */
const failureTtlMs = 10_000;

interface Reader<Value, Prepared> extends ReadRequest<Value, Prepared> {
  readonly id: string;
  readonly name: EntryName;
  /** Epoch milliseconds. */
  readonly askedAt: number;
}

/**
 * A read-through cache in two tiers, memory and shared store, in which a fetch happens once: per process because all readers
 * join the flight under way, per fleet because a flight fetches only while it holds the lease. The others wait for the value.
 * A failure is never kept; it is shared only with those who were waiting for it, in this process and in others.
 */
export class LeasedCache<Value> {
  readonly #now: () => number;
  readonly #memory: LRUCache<string, Entry<Value>>;
  readonly #flights = new Map<string, Promise<Entry<Value>>>();
  readonly #longestHoldMs: number;

  constructor(private readonly options: LeasedCacheOptions<Value>) {
    this.#now = options.now ?? Date.now;
    this.#longestHoldMs = options.workMs + leaseMarginMs;
    this.#memory = new LRUCache({
      max: options.maxEntries,
      maxSize: options.maxBytes ?? Math.floor(getHeapStatistics().heap_size_limit / 4),
      // Of the encoded value: a secret hides its text. One larger than all the room is answered, but not kept.
      sizeCalculation: ({ value }) => heldBytes(options.codec.encode(value)),
    });
  }

  /** Whether the entry was fetched less than `ageMs` ago. One from the time of a wrong clock may be of any age. */
  isYoungerThan(entry: Entry<Value>, ageMs: number): boolean {
    return this.#now() - entry.fetchedAt < ageMs && !this.#isOfWrongClock(entry);
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
   * An acceptable entry: at once when memory has it. Waits for other processes at most twice the work time plus the margin.
   * @throws what the fetch threw, here or in the process that held the lease
   */
  read<Prepared>(id: string, request: ReadRequest<Value, Prepared>): Entry<Value> | Promise<Entry<Value>> {
    return this.held(id, request.acceptable) ?? this.#join(id, request);
  }

  async #join<Prepared>(id: string, request: ReadRequest<Value, Prepared>): Promise<Entry<Value>> {
    const reader = { ...request, id, name: [this.options.kind, id], askedAt: this.#now() };
    for (;;) {
      const underway = this.#flights.get(id);
      if (underway === undefined) {
        const flight = this.#load(reader).finally(() => this.#flights.delete(id));
        this.#flights.set(id, flight);
        return flight;
      }
      // That flight was started for another reader: its entry may be too old for this one, its refusal not meant for it.
      const entry = await underway.catch((error) => {
        if (!isRefusalOfAnother(error, reader.holder)) throw error;
      });
      if (entry && this.#willDo(entry, reader)) return entry;
    }
  }

  async #load<Prepared>(reader: Reader<Value, Prepared>): Promise<Entry<Value>> {
    const { id, name, prepare } = reader;
    const { store, codec, workMs } = this.options;
    const reason = this.#memory.has(id) ? 'outdated' : 'absent';
    let prepared: { readonly value: Prepared } | undefined;
    let refused: Buffer | undefined;
    let before = this.peek(id);
    // By a monotonic clock: correcting a wall clock would end or prolong the wait.
    const patience = () => performance.now() + this.#longestHoldMs + workMs;
    let patienceEndsAt = patience();
    while (performance.now() < patienceEndsAt) {
      const owner = randomUUID();
      const askedAt = performance.now();
      const turn = await store.acquire(name, owner, leaseMs, refused);
      if (turn.state === 'held') {
        const brought = await this.#waitForHolder(reader, turn.owner, patienceEndsAt);
        if (brought !== undefined) return this.#remember(brought, reader, 'waited', reason);
      } else if (turn.state === 'found') {
        refused = turn.entry.bytes;
        const stored = decodeEntry(turn.entry.value, codec);
        // Even one that will not do now is kept: it can be shown when the service fails.
        const entry = stored && this.#keepNewer(id, stored);
        if (entry && this.#willDo(entry, reader)) return this.#remember(entry, reader, 'store', reason);
        before = this.peek(id) ?? entry ?? before; // memory may drop it before it is needed
      } else {
        const renewal = this.#keepRenewing(name, owner);
        try {
          if (prepare && !prepared) {
            prepared = { value: await prepare() };
            if (performance.now() - askedAt > quickMs) {
              await store.release(name, owner);
              patienceEndsAt = patience();
              continue;
            }
          }
          const fetched = await this.#fetch(reader, prepared?.value as Prepared, before);
          return await this.#publish(reader, owner, fetched, refused);
        } catch (error) {
          // What one caller alone is refused says nothing to others.
          const isShared = error instanceof GatewayError && error.refused === undefined;
          if (isShared) await store.fail(name, encodeFailure(error), failureTtlMs, owner);
          else await store.release(name, owner);
          throw error;
        } finally {
          clearInterval(renewal);
        }
      }
    }
    throw upstreamTimeout();
  }

  /**
   * Renews the lease, never beyond the time after which others take its holder for dead. Losing it ends nothing but the
   * renewals: the call has been made, and {@link #publish} sees that the lease is lost.
   */
  #keepRenewing(name: EntryName, owner: string): NodeJS.Timeout {
    const endsAt = performance.now() + this.#longestHoldMs;
    const renew = async () => {
      const leftMs = endsAt - performance.now();
      const isHeld = leftMs > 0 && (await this.options.store.renew(name, owner, Math.min(leaseMs, leftMs)));
      if (!isHeld) clearInterval(timer);
    };
    const timer = setInterval(() => renew().catch(() => undefined), renewEveryMs).unref();
    return timer;
  }

  async #fetch<Prepared>({ id, fetch }: Reader<Value, Prepared>, prepared: Prepared, before?: Entry<Value>) {
    const work = new AbortController();
    const timer = setTimeout(() => work.abort(), this.options.workMs);
    try {
      const value = await fetch(prepared, work.signal, before);
      const entry: Entry<Value> = { version: randomUUID(), value, fetchedAt: this.#now() };
      const reason = this.#memory.has(id) ? 'outdated' : 'absent';
      this.#memory.set(id, entry); // also over one with a later time, whose clock may have been ahead
      this.options.onRead?.(this.options.kind, 'fetched', reason);
      return entry;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Writes what was fetched and ends the lease. A process whose lease was over must not overwrite what the next holder wrote:
   * it takes the lease again, and writes only when the store has nothing newer than `before`.
   */
  async #publish<Prepared>(reader: Reader<Value, Prepared>, owner: string, fetched: Entry<Value>, before?: Buffer) {
    const { store, codec, ttlMs } = this.options;
    const { id, name } = reader;
    const settle = () => store.settle(name, encodeEntry(fetched, codec), ttlMs(fetched.value), owner);
    if (await settle()) return fetched;
    const turn = await store.acquire(name, owner, leaseMs, before);
    if (turn.state === 'taken') await settle();
    const newer = turn.state === 'found' ? decodeEntry(turn.entry.value, codec) : undefined;
    if (newer === undefined || !this.#willDo(newer, reader)) return fetched;
    this.#memory.set(id, newer);
    return newer;
  }

  /** Waits until `holder` is done, or must have died. @throws the holder's failure */
  async #waitForHolder<Prepared>(reader: Reader<Value, Prepared>, holder: Buffer, until: number) {
    const { id, name } = reader;
    const { store, codec, kind, onLeaseWait } = this.options;
    const waitedFrom = performance.now();
    // No work lasts longer: then the lease is forged, or the store's clock is wrong. It must not hold up every reader.
    const deadAt = waitedFrom + this.#longestHoldMs;
    do {
      const leftMs = deadAt - performance.now();
      if (leftMs <= 0) {
        await store.release(name, holder);
        break;
      }
      await store.waitForRelease(name, Math.min(lookAgainMs, leftMs, until - performance.now()));
    } while (performance.now() < until && (await store.leaseOwner(name))?.equals(holder));
    onLeaseWait?.(kind, (performance.now() - waitedFrom) / 1000);
    const stored = decodeEntry((await store.find(name))?.value, codec);
    const entry = stored && this.#keepNewer(id, stored);
    if (entry && this.#willDo(entry, reader)) return entry;
    const failure = decodeFailure(await store.failureOf(name, holder.toString()));
    if (failure !== undefined) throw failure;
    return undefined;
  }

  #willDo<Prepared>(entry: Entry<Value>, reader: Reader<Value, Prepared>): boolean {
    if (reader.acceptable(entry)) return true;
    return reader.takesFetchedMeanwhile === true && entry.fetchedAt >= reader.askedAt && !this.#isOfWrongClock(entry);
  }

  /** Further ahead of our clock than two clocks may be apart. */
  #isOfWrongClock({ fetchedAt }: Entry<Value>): boolean {
    return fetchedAt - this.#now() > (this.options.skewMs ?? 1000);
  }

  /** Keeps an acceptable entry in place of an unacceptable one without comparing times: clocks of machines differ. */
  #remember<Prepared>(entry: Entry<Value>, reader: Reader<Value, Prepared>, tier: CacheTier, reason: ReadReason) {
    const held = this.#memory.get(reader.id);
    if (held !== undefined && !this.#willDo(held, reader)) this.#memory.set(reader.id, entry);
    this.options.onRead?.(this.options.kind, tier, reason);
    return entry;
  }

  /** Keeps the newer of `stored` and what is held, which for the same version is what readers made their views of. */
  #keepNewer(id: string, stored: Entry<Value>): Entry<Value> {
    const held = this.#memory.get(id);
    if (held?.version === stored.version) return held;
    const isNewer = held === undefined || held.fetchedAt <= stored.fetchedAt || this.#isOfWrongClock(held);
    if (isNewer) this.#memory.set(id, stored);
    return stored;
  }
}
