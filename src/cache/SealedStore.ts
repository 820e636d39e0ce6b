import { BoundedCache } from '../process/BoundedCache.js';
import { pause } from '../process/pause.js';
import type { Turn } from '../stores/Store.js';
import { StoreError } from '../stores/StoreError.js';
import { type EntryName, type Found, OneKeyStore, type OneKeyStoreOptions } from './OneKeyStore.js';
import type { KeyRing, Sealer } from './sealing.js';

/** A name that was claimed; `withdraw` makes it free again, unless something was written over the claim. */
export interface Claim {
  withdraw(): Promise<void>;
}

/** How far ahead of ours the clock of a {@link SealedStore.mark}'s writer may be, in milliseconds, before it is ignored. */
const skewMs = 10_000;
const maxOwnMarks = 5000;
/** How long the lease lasts under which a mark is written, in milliseconds. */
const leaseOfMarkMs = 1000;
/** Pause before the next try to take a lease that another process holds for one short write, in milliseconds. */
export const heldPauseMs = 100;
/** After this many tries to take the lease, a mark is written without it. */
const mostTriesOfMark = 20;

/** A mark that this process wrote. `setAt` is a time of the monotonic clock. */
interface OwnMark {
  readonly found: Found;
  readonly ttlMs: number;
  readonly setAt: number;
}

export interface SealedStoreOptions extends OneKeyStoreOptions {
  readonly sealer: Sealer;
}

/**
 * A {@link OneKeyStore} for each known encryption key: one, or several during a key rotation. Values are written under every
 * key and the newest is read, so that processes that know only one of the keys see everything. Claims and leases are taken
 * oldest key first and released newest first: the holder of the oldest holds them all. A process that dies half-way leaves
 * claims that expire.
 */
export class SealedStore {
  readonly #ownMarks = new BoundedCache<OwnMark>({ max: maxOwnMarks });
  readonly #stores = new WeakMap<KeyRing, OneKeyStore>();

  constructor(private readonly options: SealedStoreOptions) {}

  /** Current key first. */
  get stores(): readonly OneKeyStore[] {
    return this.options.sealer.rings.map((ring) => {
      const store = this.#stores.get(ring) ?? new OneKeyStore(ring, this.options);
      this.#stores.set(ring, store);
      return store;
    });
  }

  /** The value under `name`; undefined when there is none. */
  async look(name: EntryName): Promise<unknown> {
    return newestOf(await this.#findAll(name))?.value;
  }

  /** The values under every key, current key first. They differ when their writers do not know the same keys. */
  async lookUnderAllKeys(name: EntryName): Promise<readonly unknown[]> {
    return (await this.#findAll(name)).flatMap((found) => (found ? [found.value] : []));
  }

  /** As {@link look}; also copies a value to the current key. Not for one that its writer may delete: the copy would stay. */
  async find(name: EntryName): Promise<Found | undefined> {
    return this.#sealAnew(name, await this.#findAll(name));
  }

  /** Writes a mark: a value that holds back calls of the fleet for `ttlMs`. */
  async setMark(name: EntryName, value: unknown, ttlMs: number): Promise<void> {
    this.#rememberMark(name, value, ttlMs);
    await this.set(name, value, ttlMs);
  }

  /** Writes a mark, unless there is one that lasts longer: of several written at the same time the longest stays. */
  async prolongMark(name: EntryName, value: unknown, ttlMs: number): Promise<void> {
    const endsAt = Date.now() + ttlMs;
    const lastsLonger = (mark: Found | undefined) => mark !== undefined && mark.expiresAt >= endsAt;
    if (lastsLonger(this.#ownMark(name))) return;
    const mine = this.#rememberMark(name, value, ttlMs);
    // True until another call in this process begins to write a longer mark.
    const isLongest = () => this.#ownMarks.get(this.#keyOf(name)) === mine;
    const leftMs = () => Math.max(1, endsAt - Date.now());
    const owner = crypto.randomUUID();
    for (let tries = 0, shorter: Buffer | undefined; tries < mostTriesOfMark && isLongest(); tries += 1) {
      const turn = await this.acquire(name, owner, leaseOfMarkMs, shorter);
      if (turn.state === 'taken' && (await this.settle(name, value, leftMs(), owner))) return;
      if (turn.state === 'held') await pause(heldPauseMs);
      if (turn.state !== 'found') continue;
      if (lastsLonger(this.#believed(turn.entry))) return;
      shorter = turn.entry.bytes;
    }
    if (isLongest()) await this.set(name, value, leftMs());
  }

  /**
   * The value of a mark. A mark written by a clock far ahead of ours is ignored. What this process wrote itself counts even
   * when such a mark has overwritten it.
   */
  async mark(name: EntryName): Promise<unknown> {
    const marks = (await this.#findAll(name)).map((mark) => this.#believed(mark));
    return newestOf([...marks, this.#ownMark(name)])?.value;
  }

  async set(name: EntryName, value: unknown, ttlMs: number): Promise<void> {
    const content = this.#lasting(value, ttlMs);
    await Promise.all(this.stores.map((store) => store.set(name, content, ttlMs)));
  }

  /** Claims `name`; undefined if it is taken. Atomic across the fleet. @throws StoreError when the store does not answer */
  async claim(name: EntryName, value: unknown, ttlMs: number): Promise<Claim | undefined> {
    const content = this.#lasting(value, ttlMs);
    const withdraw = await this.#takeAll((store) => store.claim(name, content, ttlMs));
    return withdraw && { withdraw };
  }

  /**
   * Adds `by` to the counter `name`. Each key has a counter for the processes that know it: the highest count is the fleet's.
   * @throws StoreError when the store does not answer or returns an impossible count, such as one above `most`
   */
  async increment(name: EntryName, by: number, ttlMs: number, most = Number.MAX_SAFE_INTEGER): Promise<number> {
    const counts = await Promise.all(this.stores.map((store) => store.increment(name, by, ttlMs)));
    if (counts.some((count) => !(Number.isSafeInteger(count) && count >= by && count <= most))) {
      throw new StoreError('failed', 'The store gave a count that cannot be true.');
    }
    return Math.max(...counts);
  }

  /** As `Store.acquire`; `owner` is random and not secret. */
  async acquire(name: EntryName, owner: string, ttlMs: number, refused?: Buffer): Promise<Turn<Found>> {
    const found = this.options.sealer.rings.length > 1 ? await this.#findAll(name) : undefined;
    const entry = found && !isNewest(refused, found) && (await this.#sealAnew(name, found));
    if (entry) return { state: 'found', entry };
    let turn: Turn<Found> = { state: 'taken' };
    await this.#takeAll(async (store, at) => {
      turn = await store.acquire(name, owner, ttlMs, found ? found[at]?.bytes : refused);
      return turn.state === 'taken' ? () => store.release(name, owner) : undefined;
    });
    return turn;
  }

  /** As `Store.renew`. True if the lease is held under any key: a key that came into use later has none. */
  async renew(name: EntryName, owner: string, ttlMs: number): Promise<boolean> {
    const held = await Promise.all(this.stores.map((store) => store.renew(name, owner, ttlMs)));
    return held.some(Boolean);
  }

  /** As `Store.settle`. */
  async settle(name: EntryName, value: unknown, ttlMs: number, owner: string): Promise<boolean> {
    const content = this.#lasting(value, ttlMs);
    let wasHeld = true;
    for (const store of this.stores) wasHeld = (await store.settle(name, content, ttlMs, owner)) && wasHeld;
    return wasHeld;
  }

  /** If `owner` holds the lease, releases it and stores `failure` for those who waited for `owner`. */
  async fail(name: EntryName, failure: unknown, ttlMs: number, owner: string): Promise<void> {
    const content = this.#lasting(failure, ttlMs);
    for (const store of this.stores) await store.fail(name, content, ttlMs, owner);
  }

  async failureOf(name: EntryName, owner: string): Promise<unknown> {
    if (!/^[\w-]{1,64}$/.test(owner)) return undefined; // a forged lease
    return newestOf(await Promise.all(this.stores.map((store) => store.failureOf(name, owner))))?.value;
  }

  /** The owner of the lease of `name`: bytes, because a forged owner need not be text. */
  async leaseOwner(name: EntryName): Promise<Buffer | undefined> {
    const owners = await Promise.all(this.stores.map((store) => store.leaseOwner(name)));
    return owners.findLast(Boolean);
  }

  /** Releases the lease if `owner` still holds it. */
  async release(name: EntryName, owner: string | Buffer): Promise<void> {
    for (const store of this.stores) await store.release(name, owner);
  }

  #rememberMark(name: EntryName, value: unknown, ttlMs: number): OwnMark {
    const found = { ...this.#lasting(value, ttlMs), bytes: Buffer.alloc(0) };
    const mark = { found, ttlMs, setAt: performance.now() };
    this.#ownMarks.set(this.#keyOf(name), mark);
    return mark;
  }

  /** Undefined for a mark that a clock far ahead of ours wrote. */
  #believed(mark: Found | undefined): Found | undefined {
    return mark && mark.expiresAt <= Date.now() + mark.ttlMs + skewMs ? mark : undefined;
  }

  #ownMark(name: EntryName): Found | undefined {
    if (this.#ownMarks.size === 0) return undefined;
    const key = this.#keyOf(name);
    const own = this.#ownMarks.get(key);
    const agoMs = own ? performance.now() - own.setAt : 0;
    if (own && agoMs >= 0 && agoMs < own.ttlMs) return own.found;
    this.#ownMarks.delete(key);
    return undefined;
  }

  #keyOf(name: EntryName): string {
    return (this.stores[0] as OneKeyStore).keyOf(name);
  }

  #findAll(name: EntryName): Promise<readonly (Found | undefined)[]> {
    return Promise.all(this.stores.map((store) => store.find(name)));
  }

  #lasting(value: unknown, ttlMs: number) {
    return { value, expiresAt: Date.now() + ttlMs, ttlMs };
  }

  /** Takes something under every key or under none. `take` returns a function that gives it back; this, one for all keys. */
  async #takeAll(take: (store: OneKeyStore, at: number) => Promise<(() => Promise<unknown>) | undefined>) {
    const taken: (() => Promise<unknown>)[] = [];
    const giveBack = async () => {
      for (const give of taken) await give();
    };
    let hasAll = false;
    try {
      for (const [at, store] of [...this.stores.entries()].reverse()) {
        const give = await take(store, at);
        if (give === undefined) return undefined;
        taken.unshift(give);
      }
      hasAll = true;
      return giveBack;
    } finally {
      if (!hasAll) await giveBack();
    }
  }

  /** Returns the newest value, and copies it to the current key unless something is there, which would be newer. */
  async #sealAnew(name: EntryName, found: readonly (Found | undefined)[]): Promise<Found | undefined> {
    const newest = newestOf(found);
    if (!newest?.expiresAt || found[0]?.expiresAt) return newest;
    const { bytes: _, ...content } = newest;
    const leftMs = Math.max(1, content.expiresAt - Date.now());
    const { stores } = this;
    const withdraw = await stores[0]?.claim(name, content, leftMs).catch(() => undefined);
    // Erasing goes from the oldest key to the current: a value erased under its old key must not survive as this copy.
    const isErased = withdraw && (await stores[found.indexOf(newest)]?.find(name)) === undefined;
    if (isErased) await withdraw();
    return newest;
  }
}

/** The {@link OneKeyStoreOptions.scope} of one client of the service. */
export const scopeOf = (baseUrl: string, clientId: string, apiVersion: string) => [baseUrl, clientId, apiVersion];

/** Whether `bytes` are the newest value as stored under any key: its copy under another key has other bytes. */
function isNewest(bytes: Buffer | undefined, found: readonly (Found | undefined)[]): boolean {
  const expiresAt = newestOf(found)?.expiresAt;
  return found.some((each) => each !== undefined && each.expiresAt === expiresAt && bytes?.equals(each.bytes));
}

/** Values under one name usually have the same time to live: the one that expires last was written last. */
function newestOf(found: readonly (Found | undefined)[]): Found | undefined {
  return found.filter((each) => each !== undefined).sort((one, other) => other.expiresAt - one.expiresAt)[0];
}
