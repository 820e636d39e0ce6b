import { z } from 'zod';
import { failureKeyOf, leaseKeyOf, type Store, type Turn } from '../stores/Store.js';
import { StoreError } from '../stores/StoreError.js';
import type { KeyRing, Sealer } from './sealing.js';

/** A name in the store as readable parts; only its keyed hash leaves the process. */
export type EntryName = readonly string[] | SubjectName;

/** Of something about `subject`: the keys of all that is begin alike, so that it can be listed and erased. */
export interface SubjectName {
  readonly subject: string;
  readonly parts: readonly string[];
}

/** `expiresAt` in epoch milliseconds; `ttlMs` is how long it was to live, which earlier versions did not write. */
const envelope = z.object({ value: z.unknown(), expiresAt: z.number(), ttlMs: z.number().optional() });

/** What is stored under a name. When its bytes do not open, or are too old, `value` is undefined and `expiresAt` is 0. */
export interface Found extends z.output<typeof envelope> {
  readonly bytes: Buffer;
}

/** A name that was claimed; `withdraw` makes it free again, unless something was written over the claim. */
export interface Claim {
  withdraw(): Promise<void>;
}

/** A name under one key. */
export interface Slot {
  readonly ring: KeyRing;
  readonly key: string;
}

type KeyAndBytes = readonly [key: string, bytes: Buffer];

/** How far two clocks of the fleet may be apart before a {@link SealedStore.mark} counts as absent. */
const skewMs = 10_000;
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
 * While a previous key is known, a name has one {@link Slot} for each key, so that processes that know only one of the keys
 * see everything. Values are written to all slots and the newest is read. Claims and leases are taken oldest key first and
 * withdrawn newest first: who holds the oldest holds them all. A process that dies half-way leaves claims that expire.
 */
export class SealedStore {
  readonly #store: Store;
  readonly #now: () => number;

  constructor(readonly options: SealedStoreOptions) {
    this.#store = options.store;
    this.#now = options.now ?? Date.now;
  }

  /** The value under `name`; undefined when there is none. */
  async look(name: EntryName): Promise<unknown> {
    return newestOf(await this.#findAll(this.#slots(name)))?.value;
  }

  /** As {@link look}, and seals what was written under an old key anew; not for what its writer may delete under that key. */
  async find(name: EntryName): Promise<Found | undefined> {
    const slots = this.#slots(name);
    return this.#sealAnew(slots, await this.#findAll(slots));
  }

  /** The value of a mark that holds calls back for a while. One that a clock far ahead of ours wrote is absent. */
  async mark(name: EntryName): Promise<unknown> {
    const latest = (mark: Found) => this.#now() + (mark.ttlMs ?? longestMarkMs) + skewMs;
    const marks = await this.#findAll(this.#slots(name));
    return newestOf(marks.filter((mark) => mark && mark.expiresAt <= latest(mark)))?.value;
  }

  async set(name: EntryName, value: unknown, ttlMs: number): Promise<void> {
    const sealed = this.#seal(this.#slots(name), value, ttlMs);
    await Promise.all(sealed.map(([key, bytes]) => this.#store.set(key, bytes, ttlMs)));
  }

  /** Writes if nothing is under `name`, else undefined. Atomic over the fleet. @throws StoreError when the store is away */
  async claim(name: EntryName, value: unknown, ttlMs: number): Promise<Claim | undefined> {
    const claims = this.#seal(this.#slots(name), value, ttlMs);
    const isOurs = await this.#takeAll(claims, ([key, bytes]) => this.#store.claim(key, bytes, ttlMs));
    return isOurs ? { withdraw: () => this.#giveBack(claims) } : undefined;
  }

  /**
   * Adds `by` to the counter `name`. Under each key count the processes that know it: the highest count is the fleet's.
   * @throws StoreError when the store is away, or its count cannot be true: it is above `most`
   */
  async increment(name: EntryName, by: number, ttlMs: number, most = Number.MAX_SAFE_INTEGER): Promise<number> {
    const counts = await Promise.all(this.#slots(name).map(({ key }) => this.#store.increment(key, by, ttlMs)));
    if (counts.some((count) => !(Number.isSafeInteger(count) && count >= by && count <= most))) {
      throw new StoreError('failed', 'The store gave a count that cannot be true.');
    }
    return Math.max(...counts);
  }

  /** As {@link Store.acquire}; `owner` is random and not secret. */
  async acquire(name: EntryName, owner: string, ttlMs: number, refused?: Buffer): Promise<Turn<Found>> {
    const slots = this.#slots(name);
    const found = slots.length > 1 ? await this.#findAll(slots) : undefined;
    const entry = found && (await this.#sealAnew(slots, found));
    if (entry && !refused?.equals(entry.bytes)) return { state: 'found', entry };
    let turn: Turn<Found> = { state: 'taken' };
    await this.#takeAll(leasesOf(slots, owner), async ([, holder], at) => {
      const slot = slots[at] as Slot;
      const given = await this.#store.acquire(slot.key, holder, ttlMs, found ? found[at]?.bytes : refused);
      turn = given.state === 'found' ? { state: 'found', entry: this.#open(slot, given.entry) } : given;
      return given.state === 'taken';
    });
    return turn;
  }

  /** As {@link Store.renew}; a key that came into use after the lease was taken does not make it a lost one. */
  async renew(name: EntryName, owner: string, ttlMs: number): Promise<boolean> {
    const bytes = Buffer.from(owner);
    const held = await Promise.all(this.#slots(name).map(({ key }) => this.#store.renew(key, bytes, ttlMs)));
    return held.some(Boolean);
  }

  /** As {@link Store.settle}. */
  settle(name: EntryName, value: unknown, ttlMs: number, owner: string): Promise<boolean> {
    return this.#settle(name, this.#seal(this.#slots(name), value, ttlMs), ttlMs, owner);
  }

  /** Ends the lease, if `owner` holds it, and leaves `failure` to those who waited for `owner`. */
  async fail(name: EntryName, failure: unknown, ttlMs: number, owner: string): Promise<void> {
    await this.#settle(name, this.#seal(this.#failureSlots(name, owner), failure, ttlMs), ttlMs, owner);
  }

  async failureOf(name: EntryName, owner: string): Promise<unknown> {
    if (!/^[\w-]{1,64}$/.test(owner)) return undefined; // a forged lease
    return newestOf(await this.#findAll(this.#failureSlots(name, owner)))?.value;
  }

  /** Who holds the lease of `name`. A forged owner need not be text. */
  async leaseOwner(name: EntryName): Promise<Buffer | undefined> {
    return (await Promise.all(this.#leaseKeys(name).map((key) => this.#store.get(key)))).findLast(Boolean);
  }

  /** Ends the lease when `owner` still holds it, which wakes {@link waitForRelease}. */
  release(name: EntryName, owner: string | Buffer): Promise<void> {
    return this.#giveBack(leasesOf(this.#slots(name), owner));
  }

  /** Resolves when the lease may have been released, at the latest after `timeoutMs`. */
  async waitForRelease(name: EntryName, timeoutMs: number): Promise<void> {
    const keys = this.#leaseKeys(name);
    const owners = keys.length > 1 ? await Promise.all(keys.map((key) => this.#store.get(key))) : [];
    const held = keys.findLast((_, at) => owners[at]) ?? (keys[0] as string);
    await this.#store.waitForDelete(held, timeoutMs);
  }

  #leaseKeys(name: EntryName): readonly string[] {
    return this.#slots(name).map(({ key }) => leaseKeyOf(key));
  }

  async #settle(name: EntryName, sealed: readonly KeyAndBytes[], ttlMs: number, owner: string): Promise<boolean> {
    let wasHeld = true;
    for (const [at, slot] of this.#slots(name).entries()) {
      const [key, value] = sealed[at] as KeyAndBytes;
      wasHeld = (await this.#store.settle(slot.key, Buffer.from(owner), { key, value, ttlMs })) && wasHeld;
    }
    return wasHeld;
  }

  /** Takes all of `claims`, whose first is of the current key, or none of them. */
  async #takeAll(claims: readonly KeyAndBytes[], take: (claim: KeyAndBytes, at: number) => Promise<boolean>) {
    let taken = claims.length;
    try {
      while (taken > 0 && (await take(claims[taken - 1] as KeyAndBytes, taken - 1))) taken -= 1;
    } finally {
      if (taken > 0) await this.#giveBack(claims.slice(taken));
    }
    return taken === 0;
  }

  async #giveBack(claims: readonly KeyAndBytes[]): Promise<void> {
    for (const [key, bytes] of claims) await this.#store.compareAndDelete(key, bytes);
  }

  /** The newest, which is stored under the current key as well, if nothing is there: that would be newer. */
  async #sealAnew([slot]: readonly Slot[], found: readonly (Found | undefined)[]): Promise<Found | undefined> {
    const newest = newestOf(found);
    if (!slot || !newest?.expiresAt || found[0]?.expiresAt) return newest;
    const { value, expiresAt, ttlMs } = newest;
    const leftMs = Math.max(1, expiresAt - this.#now());
    await this.#store.claim(slot.key, sealFor(slot, { value, expiresAt, ttlMs }), leftMs).catch(() => false);
    return newest;
  }

  /** Of each slot its key and the bytes for it. */
  #seal(slots: readonly Slot[], value: unknown, ttlMs: number): readonly KeyAndBytes[] {
    const content = { value, expiresAt: this.#now() + ttlMs, ttlMs };
    return slots.map((slot) => [slot.key, sealFor(slot, content)]);
  }

  #findAll(slots: readonly Slot[]): Promise<readonly (Found | undefined)[]> {
    const find = async (slot: Slot) => {
      const bytes = await this.#store.get(slot.key);
      return bytes && this.#open(slot, bytes);
    };
    return Promise.all(slots.map(find));
  }

  #open(slot: Slot, bytes: Buffer): Found {
    return openFound(slot, bytes, this.#now());
  }

  #slots(name: EntryName): readonly Slot[] {
    return slotsOf(this.options, name);
  }

  #failureSlots(name: EntryName, owner: string): readonly Slot[] {
    return this.#slots(name).map(({ ring, key }) => ({ ring, key: failureKeyOf(key, owner) }));
  }
}

/** The scope of what a client reads at the service. */
export const scopeOf = (baseUrl: string, clientId: string, apiVersion: string) => [baseUrl, clientId, apiVersion];

/** One for each key, current first. */
export function slotsOf(
  { scope, sealer }: Pick<SealedStoreOptions, 'scope' | 'sealer'>,
  name: EntryName,
): readonly Slot[] {
  return sealer.rings.map((ring) => ({ ring, key: keyOf(ring, scope, name) }));
}

function keyOf(ring: KeyRing, scope: readonly string[], name: EntryName): string {
  if (!('subject' in name)) return ring.name([...scope, ...name]);
  return beginningOf(ring, scope, name.subject) + ring.name(name.parts);
}

/** What the keys of everything about `subject` begin with. */
export function beginningOf(ring: KeyRing, scope: readonly string[], subject: string): string {
  return `${ring.name([...scope, 'subject', subject])}.`;
}

/** What `bytes`, found under a slot, hold at the time `now`. */
export function openFound({ ring, key }: Slot, bytes: Buffer, now: number): Found {
  try {
    const found = envelope.parse(JSON.parse(String(ring.open(key, bytes))));
    // A store whose clock is wrong, or that was rolled back, may still hold what has expired.
    if (found.expiresAt > now) return { ...found, bytes };
  } catch {
    // Something foreign.
  }
  return { bytes, value: undefined, expiresAt: 0 };
}

function sealFor({ ring, key }: Slot, content: z.input<typeof envelope>): Buffer {
  return ring.seal(key, Buffer.from(JSON.stringify(content)));
}

function leasesOf(slots: readonly Slot[], owner: string | Buffer): readonly KeyAndBytes[] {
  const bytes = Buffer.from(owner as string);
  return slots.map(({ key }) => [leaseKeyOf(key), bytes]);
}

/** Values under one name usually have the same time to live: the one that expires last was written last. */
function newestOf(found: readonly (Found | undefined)[]): Found | undefined {
  return found.filter((each) => each !== undefined).sort((one, other) => other.expiresAt - one.expiresAt)[0];
}
