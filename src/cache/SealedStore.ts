import { z } from 'zod';
import type { SealedEntry, Sealer } from './sealing.js';
import { leaseKeyOf, type Store } from './stores/Store.js';
import { StoreError } from './stores/StoreError.js';

/** A name in the store as readable parts; only its keyed hash leaves the process. */
export type EntryName = readonly string[];

/** `expiresAt` in epoch milliseconds; `ttlMs` is how long it was to live, which earlier versions did not write. */
const envelope = z.object({ value: z.unknown(), expiresAt: z.number(), ttlMs: z.number().optional() });
type Envelope = z.output<typeof envelope>;

/** A name that was claimed. */
export interface Claim {
  /** Makes the name free again, unless something was written over the claim. */
  withdraw(): Promise<void>;
}

/** How far apart the clocks of the fleet's machines may be before a {@link SealedStore.mark} of one is nothing to another. */
const skewMs = 10_000;
/** The longest any mark lasts, in milliseconds. */
const longestMarkMs = 3_600_000;

export interface SealedStoreOptions {
  readonly store: Store;
  readonly sealer: Sealer;
  /** What changes every answer (base URL, client id, API version): part of every name. */
  readonly scope: readonly string[];
  readonly now?: () => number;
}

/**
 * JSON values in a {@link Store} that sees neither names nor values: names are HMACs, values are encrypted and bound to
 * their name. What does not decrypt or parse (tampered, foreign, moved to another name) is absent.
 *
 * **While a previous key is known** a name has one key in the store for each, and everything is done under all of them, so
 * that in a rolling rotation the processes that know only the old key and those that know only the new one each see it.
 * Values are written under all and the newest is read. Claims ({@link claim}, {@link lease}) are taken oldest key
 * first, and given back when a later one is taken; releases go the other way, so that whoever finds the oldest key free
 * finds the others free too. A process that dies, or loses the store, half-way leaves at worst a claim that expires.
 */
export class SealedStore {
  readonly #store: Store;
  readonly #sealer: Sealer;
  readonly #scope: readonly string[];
  readonly #now: () => number;

  constructor(options: SealedStoreOptions) {
    this.#store = options.store;
    this.#sealer = options.sealer;
    this.#scope = options.scope;
    this.#now = options.now ?? Date.now;
  }

  /** The value under `name`, also when it was sealed before a key rotation; such a one is sealed anew, to outlive the old key. */
  async get(name: EntryName): Promise<unknown> {
    const [current, ...previous] = await this.#openAll(name);
    const newest = newestOf([current, ...previous]);
    if (newest === undefined || current !== undefined) return newest?.value;
    const key = this.#sealer.key(this.#parts(name));
    const anew = this.#sealer.seal(key, bytesOf(newest));
    // Only where there is nothing: what was written meanwhile is newer.
    await this.#store.setIfAbsent(key, anew, Math.max(1, newest.expiresAt - this.#now()));
    return newest.value;
  }

  /** The same, and nothing is sealed anew: for a value that its writer may still delete under the old key alone. */
  async look(name: EntryName): Promise<unknown> {
    return newestOf(await this.#openAll(name))?.value;
  }

  /**
   * The value of a mark that holds calls back for a while. One that would last longer from now than it was written for bears
   * the time of a clock that was ahead, and is absent: a correction of that clock must not make a second of silence a day.
   */
  async mark(name: EntryName): Promise<unknown> {
    const marks = (await this.#openAll(name)).filter((envelope) => {
      const latest = this.#now() + (envelope?.ttlMs ?? longestMarkMs) + skewMs;
      return envelope !== undefined && envelope.expiresAt <= latest;
    });
    return newestOf(marks)?.value;
  }

  async set(name: EntryName, value: unknown, ttlMs: number): Promise<void> {
    const entries = this.#seal(name, value, ttlMs);
    await Promise.all(entries.map(({ key, bytes }) => this.#store.set(key, bytes, ttlMs)));
  }

  /**
   * Writes only when there is nothing under `name`: undefined when there is something. Atomic over the fleet, and therefore
   * never decided without the shared store.
   *
   * @throws StoreError when the shared store cannot tell; then nothing is claimed
   */
  async claim(name: EntryName, value: unknown, ttlMs: number): Promise<Claim | undefined> {
    const entries = this.#seal(name, value, ttlMs);
    const claimed = await this.#takeAll(entries, (key, bytes) => this.#store.claim(key, bytes, ttlMs));
    return claimed ? { withdraw: () => this.#giveBack(entries) } : undefined;
  }

  /**
   * Adds `by` to the counter `name`. Under each key count the processes that know it: the highest count is the fleet's.
   *
   * @param most the highest count that can be true
   * @throws StoreError when the shared store gives no answer, or one that cannot be true: whoever counts has to decide what
   *   to do without
   */
  async increment(
    name: EntryName,
    by: number,
    ttlMs: number,
    most: number = Number.MAX_SAFE_INTEGER,
  ): Promise<{ readonly count: number; readonly resetsInMs: number }> {
    const counts = await Promise.all(this.#keys(name).map((key) => this.#store.increment(key, by, ttlMs)));
    if (counts.some(({ count }) => !(Number.isSafeInteger(count) && count >= by && count <= most))) {
      throw new StoreError('failed', 'The store gave a count that cannot be true.');
    }
    return counts.reduce((highest, other) => (other.count > highest.count ? other : highest));
  }

  /** Takes the lease of `name` for `owner` (random, not secret) until released or `ttlMs` are over. */
  lease(name: EntryName, owner: string, ttlMs: number): Promise<boolean> {
    return this.#takeAll(this.#leases(name, owner), (key, bytes) => this.#store.setIfAbsent(key, bytes, ttlMs));
  }

  /** Writes only while `owner` holds the lease of `name`; tells whether it did. */
  async setIfHolding(name: EntryName, value: unknown, ttlMs: number, owner: string): Promise<boolean> {
    const holder = Buffer.from(owner);
    for (const { key, bytes } of this.#seal(name, value, ttlMs).toReversed()) {
      if (!(await this.#store.setIfHolding(key, bytes, ttlMs, holder))) return false;
    }
    return true;
  }

  async leaseOwner(name: EntryName): Promise<string | undefined> {
    for (const key of this.#leaseKeys(name).toReversed()) {
      const owner = await this.#store.get(key);
      if (owner !== undefined) return owner.toString();
    }
    return undefined;
  }

  /** Ends the lease when `owner` still holds it, which wakes {@link waitForRelease}. */
  async release(name: EntryName, owner: string): Promise<void> {
    await this.#giveBack(this.#leases(name, owner));
  }

  /** The same for a lease that may be forged: its bytes need not be text, and are then not those of the text they read as. */
  async endLease(name: EntryName, owner: string): Promise<void> {
    for (const key of this.#leaseKeys(name)) {
      const bytes = await this.#store.get(key);
      if (bytes?.toString() === owner) await this.#store.compareAndDelete(key, bytes);
    }
  }

  /** Resolves when the lease may have been released, at the latest after `timeoutMs`. */
  async waitForRelease(name: EntryName, timeoutMs: number): Promise<void> {
    const [current = '', ...previous] = this.#leaseKeys(name);
    let held = current;
    for (const key of previous) if ((await this.#store.get(key)) !== undefined) held = key;
    await this.#store.waitForDelete(held, timeoutMs);
  }

  /** Takes all of `entries`, whose first is of the current key, or none of them. */
  async #takeAll(
    entries: readonly SealedEntry[],
    take: (key: string, bytes: Buffer) => Promise<boolean>,
  ): Promise<boolean> {
    let taken = entries.length;
    try {
      while (taken > 0) {
        const { key, bytes } = entries[taken - 1] as SealedEntry;
        if (!(await take(key, bytes))) break;
        taken -= 1;
      }
    } finally {
      if (taken > 0) await this.#giveBack(entries.slice(taken));
    }
    return taken === 0;
  }

  async #giveBack(entries: readonly SealedEntry[]): Promise<void> {
    for (const { key, bytes } of entries) await this.#store.compareAndDelete(key, bytes);
  }

  #parts(name: EntryName): readonly string[] {
    return [...this.#scope, ...name];
  }

  /** Current first. */
  #keys(name: EntryName): readonly string[] {
    return this.#sealer.keys(this.#parts(name));
  }

  #leaseKeys(name: EntryName): readonly string[] {
    return this.#keys(name).map(leaseKeyOf);
  }

  #leases(name: EntryName, owner: string): readonly SealedEntry[] {
    const bytes = Buffer.from(owner);
    return this.#leaseKeys(name).map((key) => ({ key, bytes }));
  }

  #seal(name: EntryName, value: unknown, ttlMs: number): readonly SealedEntry[] {
    return this.#sealer.sealAll(this.#parts(name), bytesOf({ value, expiresAt: this.#now() + ttlMs, ttlMs }));
  }

  /** What each of the keys of `name` holds, current first. */
  #openAll(name: EntryName): Promise<readonly (Envelope | undefined)[]> {
    return Promise.all(this.#keys(name).map(async (key) => this.#open(key, await this.#store.get(key))));
  }

  #open(key: string, bytes: Buffer | undefined): Envelope | undefined {
    const plain = bytes && this.#sealer.open(key, bytes);
    if (plain === undefined) return undefined;
    try {
      const found = envelope.parse(JSON.parse(plain.toString()));
      // A store that lost track of time, or was rolled back, must not bring the dead back.
      return found.expiresAt > this.#now() ? found : undefined;
    } catch {
      return undefined;
    }
  }
}

function bytesOf(envelope: Envelope): Buffer {
  return Buffer.from(JSON.stringify(envelope));
}

/** Values under one name are written with the same time to live, as a rule: so the one that expires last was written last. */
function newestOf(envelopes: readonly (Envelope | undefined)[]): Envelope | undefined {
  return envelopes.reduce(
    (newest, other) => (newest === undefined || (other && other.expiresAt > newest.expiresAt) ? other : newest),
    undefined,
  );
}
