import { resolve } from 'node:path';
import { Journal, type JournalOptions, type Kept, readJournal } from './journal.js';
import {
  type Field,
  hourMs,
  type Item,
  mostFields,
  type Outcome,
  type Place,
  type PutWhen,
  type Store,
  type Turn,
  type Wish,
} from './Store.js';
import { StoreError } from './StoreError.js';

interface Lease {
  readonly owner: string;
  readonly endsAt: number;
}

interface Bounds {
  readonly records?: number;
  readonly bytes?: number;
  readonly items?: number;
}

/** The size of an entry besides its value, in bytes: about what key, object and map take. */
const entryBytes = 300;

/**
 * The store of one process: a map and, for `file:`, its journal. When it grows too large, it drops the records that were not
 * used for longest, but never an item: counters, pauses and the keys of links keep promises. Times are monotonic.
 */
export class LocalStore implements Store {
  readonly kind: 'memory' | 'file';
  /** Items by their key, and fields by {@link keyOf}. */
  readonly #held = new Map<string, Kept>();
  /** The keys of each record's fields; the record used last comes last. */
  readonly #records = new Map<string, Set<string>>();
  readonly #leases = new Map<string, Lease>();
  readonly #failures = new Map<string, Lease & { readonly value: Buffer }>();
  /** Records forgotten within the hour. */
  readonly #forgotten = new Map<string, { readonly at: number; readonly list: string; readonly note: Buffer }>();
  readonly #bounds: Required<Bounds>;
  #bytes = 0;
  #items = 0;
  #sweepAt = 1000;
  #journal: Journal | undefined;
  #isClosed = false;

  /** The store of `directory`, kept in its journal. @throws StoreError `misconfigured`, fit to be shown */
  static async open(directory: string, options: JournalOptions): Promise<LocalStore> {
    const store = new LocalStore({}, 'file');
    store.#journal = await Journal.open(resolve(directory), store.#held, options);
    store.#index();
    return store;
  }

  /** What `directory` holds now, beside a gateway that uses it. Nothing is written there. */
  static async read(directory: string): Promise<LocalStore> {
    const store = new LocalStore({}, 'file');
    for (const [key, kept] of (await readJournal(resolve(directory))).held) store.#held.set(key, kept);
    store.#index();
    return store;
  }

  constructor(
    { records = 100_000, bytes = 1 << 27, items = 500_000 }: Bounds = {},
    kind: 'memory' | 'file' = 'memory',
  ) {
    this.#bounds = { records, bytes, items };
    this.kind = kind;
  }

  async acquire(place: Place, { owner, leaseMs, refused, awaited }: Wish): Promise<Turn> {
    const key = keyOf(place);
    const kept = this.#live(key);
    this.#touch(place.record);
    if (kept !== undefined && kept.version !== refused) return { state: 'found', stored: this.#storedOf(kept) };
    const now = performance.now();
    const failure = this.#failures.get(key);
    if (failure !== undefined && failure.owner === awaited && failure.endsAt > now) {
      return { state: 'failed', failure: failure.value };
    }
    const lease = this.#leases.get(key);
    if (lease !== undefined && lease.endsAt > now) return { state: 'held', owner: lease.owner };
    this.#leases.set(key, { owner, endsAt: now + leaseMs });
    return { state: 'taken', forgottenMs: now - (this.#forgotten.get(place.record)?.at ?? -Infinity) };
  }

  async renew(place: Place, owner: string, leaseMs: number): Promise<boolean> {
    const lease = this.#leases.get(keyOf(place));
    const now = performance.now();
    if (lease?.owner !== owner || lease.endsAt <= now) return false;
    this.#leases.set(keyOf(place), { owner, endsAt: now + leaseMs });
    return true;
  }

  async settle(place: Place, owner: string, outcome: Outcome): Promise<boolean> {
    const key = keyOf(place);
    if (this.#leases.get(key)?.owner !== owner) return false;
    this.#leases.delete(key);
    const now = performance.now();
    if (outcome === undefined) return true;
    if ('failure' in outcome) {
      this.#failures.set(key, { owner, endsAt: now + outcome.ttlMs, value: Buffer.from(outcome.failure) });
      return true;
    }
    this.#failures.delete(key);
    const { value, version, ageMs, ttlMs } = outcome;
    const fields = this.#records.get(place.record) ?? new Set();
    this.#records.set(place.record, fields.add(key));
    const written = this.#set(key, { value, version, writtenAt: now - ageMs, endsAt: now + ttlMs });
    if (fields.size > mostFields)
      this.#drop([...fields].find((each) => each !== key && !each.endsWith(' token')) ?? key);
    while (this.#records.size > this.#bounds.records || this.#bytes > this.#bounds.bytes) {
      const [oldest] = this.#records.keys();
      if (oldest === undefined || oldest === place.record) break;
      this.#erase(oldest);
    }
    await written;
    return true;
  }

  async forget(record: string, list: string, note: Buffer): Promise<number> {
    this.#checkOpen();
    const now = performance.now();
    const erased = this.#erase(record);
    for (const leases of [this.#leases, this.#failures]) {
      for (const key of leases.keys()) if (key.startsWith(`${record} `)) leases.delete(key);
    }
    for (const [each, { at }] of this.#forgotten) if (now - at >= hourMs) this.#forgotten.delete(each);
    this.#forgotten.delete(record);
    this.#forgotten.set(record, { at: now, list, note });
    await this.#journal?.rewrite();
    return erased;
  }

  async forgottenSince(list: string, since: number) {
    this.#checkOpen();
    const listed = [...this.#forgotten.values()].filter((each) => each.list === list && each.at >= since);
    return { notes: listed.map(({ note }) => note), mark: performance.now() };
  }

  async fields(record: string): Promise<readonly Field[]> {
    const now = performance.now();
    const fields: Field[] = [];
    for (const key of this.#records.get(record) ?? []) {
      const kept = this.#live(key);
      const name = key.slice(record.length + 1);
      if (kept) fields.push({ name, part: 'entry', leftMs: kept.endsAt - now, ...this.#storedOf(kept) });
    }
    return fields;
  }

  async get(key: string): Promise<Item | undefined> {
    const kept = this.#live(key);
    return kept && { value: kept.value, leftMs: kept.endsAt - performance.now() };
  }

  async put(key: string, value: Buffer, ttlMs: number, when: PutWhen): Promise<boolean> {
    const kept = this.#live(key);
    const endsAt = performance.now() + ttlMs;
    if (kept && (when === 'if-absent' || (when === 'if-longer' && kept.endsAt >= endsAt))) return false;
    await this.#setItem(key, { value, version: '', writtenAt: performance.now(), endsAt });
    return true;
  }

  async deleteIf(key: string, expected: Buffer): Promise<boolean> {
    if (!this.#live(key)?.value.equals(expected)) return false;
    await this.#drop(key);
    return true;
  }

  async increment(key: string, by: number, ttlMs: number) {
    const kept = this.#live(key);
    const held = kept && /^\d{1,15}$/.test(kept.value.toString('latin1')) ? kept : undefined;
    const now = performance.now();
    const { writtenAt, endsAt } = held ?? { writtenAt: now, endsAt: now + ttlMs };
    const count = Number(held?.value ?? 0) + by;
    await this.#setItem(key, { value: Buffer.from(String(count)), version: '', writtenAt, endsAt });
    return { count, leftMs: endsAt - now };
  }

  async close(): Promise<void> {
    await this.#journal?.close();
    this.#isClosed = true;
    this.#held.clear();
  }

  #index(): void {
    for (const [key, { value }] of this.#held) {
      this.#bytes += entryBytes + value.length;
      const [record, field] = key.split(' ') as [string, string?];
      if (field === undefined) this.#items += 1;
      else this.#records.set(record, (this.#records.get(record) ?? new Set()).add(key));
    }
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new StoreError('closed');
  }

  #live(key: string): Kept | undefined {
    this.#checkOpen();
    const kept = this.#held.get(key);
    return kept && kept.endsAt > performance.now() ? kept : undefined;
  }

  #storedOf({ value, version, writtenAt }: Kept) {
    return { version, value, ageMs: performance.now() - writtenAt };
  }

  #touch(record: string): void {
    const fields = this.#records.get(record);
    if (fields === undefined) return;
    this.#records.delete(record);
    this.#records.set(record, fields);
  }

  #setItem(key: string, kept: Kept): Promise<void> | undefined {
    if (!this.#held.has(key) && this.#held.size >= this.#sweepAt) this.#sweep();
    if (!this.#held.has(key)) {
      if (this.#items >= this.#bounds.items) throw new StoreError('full');
      this.#items += 1;
    }
    return this.#set(key, kept);
  }

  /** Copies the value, so that reusing its buffer does not change what is stored. */
  #set(key: string, kept: Kept): Promise<void> | undefined {
    this.#bytes += entryBytes + kept.value.length - this.#sizeOf(key);
    this.#held.set(key, { ...kept, value: Buffer.from(kept.value) });
    return this.#journal?.changed(key);
  }

  #drop(key: string): Promise<void> | undefined {
    this.#bytes -= this.#sizeOf(key);
    this.#held.delete(key);
    const [record, field] = key.split(' ') as [string, string?];
    if (field === undefined) this.#items -= 1;
    const fields = this.#records.get(record);
    fields?.delete(key);
    if (fields?.size === 0) this.#records.delete(record);
    return this.#journal?.changed(key);
  }

  #sizeOf(key: string): number {
    const kept = this.#held.get(key);
    return kept === undefined ? 0 : entryBytes + kept.value.length;
  }

  #erase(record: string): number {
    const fields = [...(this.#records.get(record) ?? [])];
    for (const key of fields) void this.#drop(key);
    return fields.length;
  }

  /** Drops what is over. Grows with what it leaves, so that it is rare. */
  #sweep(): void {
    const now = performance.now();
    for (const [key, { endsAt }] of this.#held) if (endsAt <= now) void this.#drop(key);
    for (const leases of [this.#leases, this.#failures]) {
      for (const [key, { endsAt }] of leases) if (endsAt <= now) leases.delete(key);
    }
    this.#sweepAt = 2 * this.#held.size + 1000;
  }
}

/** Names hold no space, so that no two places look alike, and none like an item. */
const keyOf = ({ record, field }: Place): string => `${record} ${field}`;
