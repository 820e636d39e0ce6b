import { z } from 'zod';
import type { KeyRing, Sealer } from './sealing.js';
import { failureKeyOf, leaseKeyOf, type Store, type Turn } from './stores/Store.js';
import { StoreError } from './stores/StoreError.js';

/** A name in the store as readable parts; only its keyed hash leaves the process. */
export type EntryName = readonly string[];

/** `expiresAt` in epoch milliseconds; `ttlMs` is how long it was to live, which earlier versions did not write. */
const envelope = z.object({ value: z.unknown(), expiresAt: z.number(), ttlMs: z.number().optional() });
type Envelope = z.output<typeof envelope>;

/** What is stored under a name. */
export interface Found {
  /** Undefined when the bytes do not open, or have expired. */
  readonly value: unknown;
  readonly bytes: Buffer;
}

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
 * While a previous key is known, a name has one {@link Slot} for each key, and everything is done in all of them: processes
 * that know only the old key and those that know only the new one both see it. Values are written to all and the newest is
 * read. Claims and leases are taken oldest key first and given back in the other direction, so whoever finds the oldest
 * free finds the others free too. A process that dies half-way leaves at worst a claim that expires.
 */
export class SealedStore {
  readonly #store: Store;
  readonly #sealer: Sealer;
  readonly #scope: readonly string[];
  readonly #now: () => number;

  constructor({ store, sealer, scope, now = Date.now }: SealedStoreOptions) {
    this.#store = store;
    this.#sealer = sealer;
    this.#scope = scope;
    this.#now = now;
  }

  /** The value under `name`, also when it was sealed before a key rotation; such a one is sealed anew, to outlive the old key. */
  async get(name: EntryName): Promise<unknown> {
    return (await this.find(name))?.value;
  }

  /** As {@link get}, with the stored bytes for {@link acquire}. */
  async find(name: EntryName): Promise<Found | undefined> {
    const slots = this.#slots(name);
    const found = await findAll(slots);
    const newest = newestOf(found);
    const [current] = slots;
    if (newest?.envelope && current && !found[0]?.envelope) {
      // Only where there is nothing: what was written meanwhile is newer.
      const leftMs = Math.max(1, newest.envelope.expiresAt - this.#now());
      await this.#store.setIfAbsent(current.key, current.seal(newest.envelope), leftMs);
    }
    return newest && { value: newest.envelope?.value, bytes: newest.bytes };
  }

  /** As {@link get}, and nothing is sealed anew: for a value that its writer may still delete under the old key alone. */
  async look(name: EntryName): Promise<unknown> {
    return newestOf(await findAll(this.#slots(name)))?.envelope?.value;
  }

  /**
   * The value of a mark that holds calls back for a while. One that would last longer from now than it was written for bears
   * the time of a clock that was ahead, and is absent: a correction of that clock must not make a second of silence a day.
   */
  async mark(name: EntryName): Promise<unknown> {
    const marks = (await findAll(this.#slots(name))).filter((mark) => {
      const latest = this.#now() + (mark?.envelope?.ttlMs ?? longestMarkMs) + skewMs;
      return mark?.envelope !== undefined && mark.envelope.expiresAt <= latest;
    });
    return newestOf(marks)?.envelope?.value;
  }

  async set(name: EntryName, value: unknown, ttlMs: number): Promise<void> {
    const sealed = this.#envelope(value, ttlMs);
    await Promise.all(this.#slots(name).map((slot) => this.#store.set(slot.key, slot.seal(sealed), ttlMs)));
  }

  /**
   * Writes only when there is nothing under `name`: undefined when there is something. Atomic over the fleet, and therefore
   * never decided without the shared store.
   *
   * @throws StoreError when the shared store cannot tell; then nothing is claimed
   */
  async claim(name: EntryName, value: unknown, ttlMs: number): Promise<Claim | undefined> {
    const sealed = this.#envelope(value, ttlMs);
    const claims = this.#slots(name).map((slot) => ({ key: slot.key, bytes: slot.seal(sealed) }));
    const isOurs = await this.#takeAll(claims, (key, bytes) => this.#store.claim(key, bytes, ttlMs));
    return isOurs ? { withdraw: () => this.#giveBack(claims) } : undefined;
  }

  /**
   * Adds `by` to the counter `name`. Under each key count the processes that know it: the highest count is the fleet's.
   *
   * @param most the highest count that can be true
   * @throws StoreError when the shared store gives no answer, or one that cannot be true
   */
  async increment(
    name: EntryName,
    by: number,
    ttlMs: number,
    most: number = Number.MAX_SAFE_INTEGER,
  ): Promise<{ readonly count: number; readonly resetsInMs: number }> {
    const counts = await Promise.all(this.#slots(name).map(({ key }) => this.#store.increment(key, by, ttlMs)));
    if (counts.some(({ count }) => !(Number.isSafeInteger(count) && count >= by && count <= most))) {
      throw new StoreError('failed', 'The store gave a count that cannot be true.');
    }
    return counts.reduce((highest, other) => (other.count > highest.count ? other : highest));
  }

  /**
   * The entry under `name`, or without one the lease of it, taken for `owner` (random, not secret) until {@link settle},
   * {@link release} or `ttlMs`. An entry of exactly the bytes `refused` counts as none.
   */
  async acquire(name: EntryName, owner: string, ttlMs: number, refused?: Buffer): Promise<Turn<Found>> {
    const slots = this.#slots(name);
    const [only] = slots;
    if (only === undefined || slots.length > 1) return this.#acquireAll(name, owner, ttlMs, refused);
    const turn = await this.#store.acquire(only.key, Buffer.from(owner), ttlMs, refused);
    if (turn.state !== 'found') return turn;
    return { state: 'found', entry: { bytes: turn.entry, value: only.open(turn.entry)?.value } };
  }

  async #acquireAll(name: EntryName, owner: string, ttlMs: number, refused?: Buffer): Promise<Turn<Found>> {
    const look = async () => {
      const entry = await this.find(name);
      return entry === undefined || refused?.equals(entry.bytes) ? undefined : ({ state: 'found', entry } as const);
    };
    const found = await look();
    if (found) return found;
    const isOurs = await this.#takeAll(this.#leases(name, owner), (key, bytes) =>
      this.#store.setIfAbsent(key, bytes, ttlMs),
    );
    if (!isOurs) return { state: 'held', owner: (await this.leaseOwner(name)) ?? Buffer.alloc(0) };
    // Another holder may have come and gone between the look and the lease.
    const newer = await look();
    if (newer) await this.release(name, owner);
    return newer ?? { state: 'taken' };
  }

  /** Writes the entry and ends the lease, if `owner` holds it; tells whether it did. */
  settle(name: EntryName, value: unknown, ttlMs: number, owner: string): Promise<boolean> {
    return this.#settle(name, value, ttlMs, owner, (key) => key);
  }

  /** Ends the lease, if `owner` holds it, and leaves `failure` to those who waited for `owner`. */
  async fail(name: EntryName, failure: unknown, ttlMs: number, owner: string): Promise<void> {
    await this.#settle(name, failure, ttlMs, owner, (key) => failureKeyOf(key, owner));
  }

  /** What {@link fail} left of `owner`. */
  async failureOf(name: EntryName, owner: string): Promise<unknown> {
    if (!/^[\w-]{1,64}$/.test(owner)) return undefined; // a forged lease
    return newestOf(await findAll(this.#slots(name, (key) => failureKeyOf(key, owner))))?.envelope?.value;
  }

  async #settle(name: EntryName, value: unknown, ttlMs: number, owner: string, keyOf: (key: string) => string) {
    const sealed = this.#envelope(value, ttlMs);
    const holder = Buffer.from(owner);
    const targets = this.#slots(name, keyOf);
    let wasHeld = true;
    for (const [at, { key }] of this.#slots(name).entries()) {
      const target = targets[at] as Slot;
      const entry = { key: target.key, value: target.seal(sealed), ttlMs };
      wasHeld = (await this.#store.settle(key, holder, entry)) && wasHeld;
    }
    return wasHeld;
  }

  /** Who holds the lease of `name`. Its bytes need not be text: somebody may have forged it. */
  async leaseOwner(name: EntryName): Promise<Buffer | undefined> {
    for (const { key } of this.#slots(name, leaseKeyOf).toReversed()) {
      const owner = await this.#store.get(key);
      if (owner !== undefined) return owner;
    }
    return undefined;
  }

  /** Ends the lease when `owner` still holds it, which wakes {@link waitForRelease}. */
  async release(name: EntryName, owner: string | Buffer): Promise<void> {
    await this.#giveBack(this.#leases(name, owner));
  }

  /** Resolves when the lease may have been released, at the latest after `timeoutMs`. */
  async waitForRelease(name: EntryName, timeoutMs: number): Promise<void> {
    const [current = '', ...previous] = this.#slots(name, leaseKeyOf).map(({ key }) => key);
    let held = current;
    for (const key of previous) if ((await this.#store.get(key)) !== undefined) held = key;
    await this.#store.waitForDelete(held, timeoutMs);
  }

  /** Takes all of `claims`, whose first is of the current key, or none of them. */
  async #takeAll(claims: readonly KeyAndBytes[], take: (key: string, bytes: Buffer) => Promise<boolean>) {
    let taken = claims.length;
    try {
      for (; taken > 0; taken -= 1) {
        const { key, bytes } = claims[taken - 1] as KeyAndBytes;
        if (!(await take(key, bytes))) break;
      }
    } finally {
      if (taken > 0) await this.#giveBack(claims.slice(taken));
    }
    return taken === 0;
  }

  async #giveBack(claims: readonly KeyAndBytes[]): Promise<void> {
    for (const { key, bytes } of claims) await this.#store.compareAndDelete(key, bytes);
  }

  #leases(name: EntryName, owner: string | Buffer): readonly KeyAndBytes[] {
    const bytes = Buffer.from(owner as string);
    return this.#slots(name, leaseKeyOf).map(({ key }) => ({ key, bytes }));
  }

  #envelope(value: unknown, ttlMs: number): Envelope {
    return { value, expiresAt: this.#now() + ttlMs, ttlMs };
  }

  /** One for each key, current first. */
  #slots(name: EntryName, keyOf: (key: string) => string = (key) => key): readonly Slot[] {
    const parts = [...this.#scope, ...name];
    return this.#sealer.rings.map((ring) => new Slot(this.#store, ring, keyOf(ring.name(parts)), this.#now));
  }
}

interface KeyAndBytes {
  readonly key: string;
  readonly bytes: Buffer;
}

interface Opened {
  readonly bytes: Buffer;
  readonly envelope: Envelope | undefined;
}

/** A name under one key. */
class Slot {
  constructor(
    readonly store: Store,
    readonly ring: KeyRing,
    readonly key: string,
    readonly now: () => number,
  ) {}

  async find(): Promise<Opened | undefined> {
    const bytes = await this.store.get(this.key);
    return bytes && { bytes, envelope: this.open(bytes) };
  }

  open(bytes: Buffer): Envelope | undefined {
    const plain = this.ring.open(this.key, bytes);
    if (plain === undefined) return undefined;
    try {
      const found = envelope.parse(JSON.parse(plain.toString()));
      // A store that lost track of time, or was rolled back, must not bring the dead back.
      return found.expiresAt > this.now() ? found : undefined;
    } catch {
      return undefined;
    }
  }

  seal(sealed: Envelope): Buffer {
    return this.ring.seal(this.key, Buffer.from(JSON.stringify(sealed)));
  }
}

function findAll(slots: readonly Slot[]): Promise<readonly (Opened | undefined)[]> {
  return Promise.all(slots.map((slot) => slot.find()));
}

/** Values under one name are written with the same time to live, as a rule: so the one that expires last was written last. */
function newestOf(found: readonly (Opened | undefined)[]): Opened | undefined {
  const expiryOf = (opened: Opened) => opened.envelope?.expiresAt ?? 0;
  return found.reduce(
    (newest, other) => (newest === undefined || (other && expiryOf(other) > expiryOf(newest)) ? other : newest),
    undefined,
  );
}
