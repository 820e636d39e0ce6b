import { randomUUID } from 'node:crypto';
import { getHeapStatistics } from 'node:v8';
import { LRUCache } from 'lru-cache';
import { GatewayError, isRefusalOfAnother, upstreamTimeout } from '../errors/errors.js';
import { heldBytes } from './heldBytes.js';
import type { EntryName, SealedStore } from './SealedStore.js';
import { type Codec, type Entry, StoredEntries } from './StoredEntries.js';

export interface ReadRequest<Value, Prepared = undefined> {
  /**
   * Whether an entry will do. `askedAt` (epoch milliseconds) is when this reader began to wait: an entry fetched since
   * then is as fresh as one it would fetch itself.
   */
  readonly acceptable: (entry: Entry<Value>, askedAt: number) => boolean;
  /** What the fetch needs and may wait long for; done before the lease is taken. */
  readonly prepare?: () => Promise<Prepared> | Prepared;
  /** Asks the service. `signal` aborts when the work has to end. */
  readonly fetch: (prepared: Prepared, signal: AbortSignal) => Promise<Value>;
  /** Who reads; a refusal of another holder is not shared with this one. */
  readonly holder?: string | undefined;
}

export type CacheTier = 'memory' | 'store' | 'fetched' | 'waited';

/** `held`: memory had an acceptable entry. Otherwise it had none (`absent`), or one too old or refused (`outdated`). */
export type ReadReason = 'held' | 'absent' | 'outdated';

export interface LeasedCacheOptions<Value> {
  /** First part of every name, and the label of metrics. */
  readonly kind: string;
  readonly store: SealedStore;
  readonly codec: Codec<Value>;
  readonly maxEntries: number;
  /** Most memory the entries take, in bytes as {@link heldBytes} estimates them. Default: a quarter of what the heap may grow to. */
  readonly maxBytes?: number;
  /** How long a value is kept in the shared store, in milliseconds. */
  readonly ttlMs: (value: Value) => number;
  /** Longest the work under the lease may take, in milliseconds. The lease itself outlives it. */
  readonly workMs: number;
  /** How far the clocks of the fleet's machines may be apart, in milliseconds. Default 1000. */
  readonly skewMs?: number;
  readonly now?: () => number;
  readonly onRead?: (kind: string, tier: CacheTier, reason: ReadReason) => void;
  readonly onLeaseWait?: (kind: string, seconds: number) => void;
}

/** What a lease lives longer than the work it covers: slow timers, a paused event loop. */
export const leaseMarginMs = 2000;

const defaultSkewMs = 1000;

/** Longest time between two looks at the store while somebody else holds the lease. */
const lookAgainMs = 1000;

/**
 * A read-through cache in two tiers, memory and shared store, in which a fetch happens once: per process because everyone
 * joins the flight under way, per fleet because a flight fetches only while it holds the lease. Losers wait for the value.
 * A failure is never kept; it is shared only with those who were waiting for it, in this process and in others.
 */
export class LeasedCache<Value> {
  readonly #options: LeasedCacheOptions<Value>;
  readonly #now: () => number;
  readonly #memory: LRUCache<string, Entry<Value>>;
  readonly #stored: StoredEntries<Value>;
  readonly #flights = new Map<string, Promise<Entry<Value>>>();
  readonly #leaseMs: number;

  constructor(options: LeasedCacheOptions<Value>) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#leaseMs = options.workMs + leaseMarginMs;
    this.#stored = new StoredEntries(options);
    this.#memory = new LRUCache({
      max: options.maxEntries,
      maxSize: options.maxBytes ?? Math.floor(getHeapStatistics().heap_size_limit / 4),
      // Of the encoded value: a secret hides its text. One larger than all the room is answered, but not kept.
      sizeCalculation: ({ value }) => heldBytes(options.codec.encode(value)),
    });
  }

  /**
   * How long ago the entry was fetched, in milliseconds; a little below zero when the clock that says so is a little ahead.
   * Infinite when it is further ahead: such an entry bears the time of a clock that was wrong, and may be of any age.
   */
  ageOf({ fetchedAt }: Entry<Value>): number {
    const ageMs = this.#now() - fetchedAt;
    return ageMs < -(this.#options.skewMs ?? defaultSkewMs) ? Infinity : ageMs;
  }

  /** The entry in this process's memory, whatever its age. */
  peek(id: string): Entry<Value> | undefined {
    return this.#memory.get(id);
  }

  /** The entry in this process's memory when it is acceptable; asks nobody. */
  held(id: string, acceptable: (entry: Entry<Value>) => boolean): Entry<Value> | undefined {
    const entry = this.#memory.get(id);
    if (entry === undefined || !acceptable(entry)) return undefined;
    this.#options.onRead?.(this.#options.kind, 'memory', 'held');
    return entry;
  }

  /**
   * An acceptable entry: at once when memory has it, otherwise from the store, another's fetch, or our own. Waits at most
   * twice the work time plus the lease margin, and that only when a lease holder died, however long its lease says it lasts.
   *
   * @throws whatever the fetch threw, here or in the process that held the lease
   */
  read<Prepared>(id: string, request: ReadRequest<Value, Prepared>): Entry<Value> | Promise<Entry<Value>> {
    return this.held(id, (entry) => request.acceptable(entry, Infinity)) ?? this.#join(id, request);
  }

  async #join<Prepared>(id: string, request: ReadRequest<Value, Prepared>): Promise<Entry<Value>> {
    const askedAt = this.#now();
    for (;;) {
      const underway = this.#flights.get(id);
      if (underway === undefined) return this.#takeOff(id, request);
      // Those on board came with demands of their own: an entry that did for them may not do here.
      const entry = await underway.catch((error) => {
        if (!isRefusalOfAnother(error, request.holder)) throw error;
      });
      if (entry && this.#willDo(entry, request, askedAt)) return entry;
    }
  }

  #takeOff<Prepared>(id: string, request: ReadRequest<Value, Prepared>): Promise<Entry<Value>> {
    const flight = this.#load(id, request).finally(() => this.#flights.delete(id));
    this.#flights.set(id, flight);
    return flight;
  }

  async #load<Prepared>(id: string, request: ReadRequest<Value, Prepared>): Promise<Entry<Value>> {
    const askedAt = this.#now();
    const willDo = (entry: Entry<Value>) => this.#willDo(entry, request, askedAt);

    const reason = this.#reasonToLook(id);
    const stored = await this.#readStore(id);
    if (stored !== undefined && willDo(stored)) return this.#remember(id, stored, willDo, 'store', reason);
    const prepared = (await request.prepare?.()) as Prepared;

    const lease = this.#stored.nameOf(id);
    // Waits are measured by a clock that nobody sets: with another, a correction would end or prolong them.
    const patienceEndsAt = performance.now() + this.#leaseMs + this.#options.workMs;
    while (performance.now() < patienceEndsAt) {
      const owner = randomUUID();
      if (await this.#options.store.lease(lease, owner, this.#leaseMs)) {
        try {
          // Between our look and our lease another holder may have come and gone.
          const again = await this.#readStore(id);
          if (again !== undefined && willDo(again)) return this.#remember(id, again, willDo, 'store', reason);
          const fetched = await this.#fetch(id, owner, request, prepared);
          // Before the lease is released: who takes it next must find the value.
          return await this.#publish(id, owner, fetched, again, willDo);
        } finally {
          await this.#options.store.release(lease, owner);
        }
      }
      const brought = await this.#waitForHolder(id, lease, willDo, patienceEndsAt);
      if (brought !== undefined) return this.#remember(id, brought, willDo, 'waited', reason);
    }
    throw upstreamTimeout();
  }

  /** Whether an entry was fetched since `askedAt` cannot be told by the time of a wrong clock. */
  #willDo<Prepared>(entry: Entry<Value>, request: ReadRequest<Value, Prepared>, askedAt: number): boolean {
    return request.acceptable(entry, this.ageOf(entry) === Infinity ? Infinity : askedAt);
  }

  async #fetch<Prepared>(
    id: string,
    owner: string,
    request: ReadRequest<Value, Prepared>,
    prepared: Prepared,
  ): Promise<Entry<Value>> {
    const work = new AbortController();
    const timer = setTimeout(() => work.abort(), this.#options.workMs);
    try {
      const value = await request.fetch(prepared, work.signal);
      const entry: Entry<Value> = { version: randomUUID(), value, fetchedAt: this.#now() };
      const reason = this.#reasonToLook(id);
      // Whatever time the entry that was held bears: it may be of a clock that was ahead.
      this.#memory.set(id, entry);
      this.#options.onRead?.(this.#options.kind, 'fetched', reason);
      return entry;
    } catch (error) {
      // A refusal of one holder's own is nothing to others.
      if (error instanceof GatewayError && error.refused === undefined) await this.#stored.shareFailure(owner, error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Writes what was fetched while the lease is held. A process that was paused for longer than its lease lasts must not
   * overwrite what the next holder wrote: it takes the lease again, and writes when the store has nothing new since it
   * looked, `before`. Otherwise what the store has is the newer: it is kept and answered if it will do.
   */
  async #publish(
    id: string,
    owner: string,
    fetched: Entry<Value>,
    before: Entry<Value> | undefined,
    willDo: (entry: Entry<Value>) => boolean,
  ): Promise<Entry<Value>> {
    if (await this.#stored.write(id, fetched, owner)) return fetched;
    const isFree = await this.#options.store.lease(this.#stored.nameOf(id), owner, this.#leaseMs);
    const present = await this.#stored.read(id);
    if (present !== undefined && present.version !== before?.version) {
      if (!willDo(present)) return fetched;
      this.#memory.set(id, present);
      return present;
    }
    if (isFree) await this.#stored.write(id, fetched, owner);
    return fetched;
  }

  /** Waits until the present holder is done, or must have died. @throws the holder's failure */
  async #waitForHolder(
    id: string,
    lease: EntryName,
    willDo: (entry: Entry<Value>) => boolean,
    until: number,
  ): Promise<Entry<Value> | undefined> {
    const holder = await this.#options.store.leaseOwner(lease);
    const waitedFrom = performance.now();
    // A lease that is still the same after that long outlives the work of whoever took it: somebody forged it, or the
    // store's clock is wrong. Without this it would hold up every reader until it ends.
    const deadAt = waitedFrom + this.#leaseMs;
    let present = holder;
    while (holder !== undefined && present === holder && performance.now() < until) {
      const leftMs = deadAt - performance.now();
      if (leftMs <= 0) {
        await this.#options.store.endLease(lease, holder);
        break;
      }
      await this.#options.store.waitForRelease(lease, Math.min(lookAgainMs, leftMs, until - performance.now()));
      present = await this.#options.store.leaseOwner(lease);
    }
    this.#options.onLeaseWait?.(this.#options.kind, (performance.now() - waitedFrom) / 1000);
    const stored = await this.#readStore(id);
    if (stored !== undefined && willDo(stored)) return stored;
    const failure = holder === undefined ? undefined : await this.#stored.failureOf(holder);
    if (failure !== undefined) throw failure;
    return undefined;
  }

  /** Keeps an entry that will do in place of one that will not, whatever times they bear: clocks of two machines differ. */
  #remember(
    id: string,
    entry: Entry<Value>,
    willDo: (entry: Entry<Value>) => boolean,
    tier: CacheTier,
    reason: ReadReason,
  ): Entry<Value> {
    const held = this.#memory.get(id);
    if (held !== undefined && !willDo(held)) this.#memory.set(id, entry);
    this.#options.onRead?.(this.#options.kind, tier, reason);
    return entry;
  }

  #reasonToLook(id: string): ReadReason {
    return this.#memory.has(id) ? 'outdated' : 'absent';
  }

  async #readStore(id: string): Promise<Entry<Value> | undefined> {
    const stored = await this.#stored.read(id);
    // Even one that will not do now: it can be shown when the service fails.
    return stored && this.#keepNewer(id, stored);
  }

  /** Keeps the newer of `stored` and what is held, which for the same version is what readers made their views of. */
  #keepNewer(id: string, stored: Entry<Value>): Entry<Value> {
    const held = this.#memory.get(id);
    if (held?.version === stored.version) return held;
    const isNewer = held === undefined || held.fetchedAt <= stored.fetchedAt || this.ageOf(held) === Infinity;
    if (isNewer) this.#memory.set(id, stored);
    return stored;
  }
}
