import { randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import { type Database, inodeIn, openDatabase, openOrCreate } from './lmdbDatabase.js';
import { unusable } from './lmdbDirectory.js';
import { LmdbEntryFormat } from './lmdbEntry.js';
import { errorOfCommit, lmdbError } from './lmdbErrors.js';
import { countIn } from './MemoryStore.js';
import { leaseKeyOf, type Store, type StoreEntry, type Turn } from './Store.js';
import { StoreError } from './StoreError.js';
import { timeLimit } from './timeLimit.js';

export interface LmdbStoreOptions {
  /** Milliseconds between rounds of care: what has expired is removed in steps. 0: none. Default 5000. */
  readonly careEveryMs?: number;
  /** Entries looked at in one step of the purge. Default 1000. */
  readonly purgeStep?: number;
  /** The clock by which entries expire, but not leases, in epoch milliseconds. Default `Date.now`. */
  readonly now?: () => number;
  /** A damaged database was renamed to `name`, in the same directory. */
  readonly onSetAside?: (name: string) => void;
}

/** What is stored under a key. `value` is undefined when it has expired or was not written by us. */
interface Held {
  readonly version: number;
  readonly value: Buffer | undefined;
  readonly leftMs: number;
}

/** The condition that nothing was written under `key` since `read`. */
type Condition = readonly [key: string, read: Held | undefined];
type Conditions = readonly [Condition, ...Condition[]];

const maxTries = 1000;

/**
 * An embedded store on disk, shared by all processes of one machine. It survives restarts and `kill -9`; a power cut may lose
 * the last moments, never the consistency of the file.
 *
 * Atomic operations read, and then write on condition that the version they read is still there. The driver's own thread
 * checks the condition: a transaction with a callback would hold the write lock of all processes until this event loop is free.
 * Only counters use one, because many processes change the same counter at the same time.
 */
export class LmdbStore implements Store {
  readonly kind = 'lmdb';
  readonly #format: LmdbEntryFormat;
  #careTimer: NodeJS.Timeout | undefined;
  #purgedTo = '';
  #closing: Promise<void> | undefined;

  /** Opens or creates the store in `directory`; replaces a damaged one. Throws a `misconfigured` {@link StoreError}. */
  static open(directory: string, options: LmdbStoreOptions = {}): LmdbStore {
    const path = resolve(directory);
    try {
      return new LmdbStore(openOrCreate(path, options.onSetAside), options);
    } catch (error) {
      throw unusable(path, error);
    }
  }

  /** Opens the store of running gateways, which go on taking care of it. Throws as {@link open}, also when there is none. */
  static openExisting(directory: string): LmdbStore {
    const path = resolve(directory);
    try {
      if (inodeIn(path) === undefined) throw new Error('there is no store in it');
      return new LmdbStore(openDatabase(path), { careEveryMs: 0 });
    } catch (error) {
      throw unusable(path, error);
    }
  }

  private constructor(
    private readonly db: Database,
    private readonly options: LmdbStoreOptions,
  ) {
    this.#format = new LmdbEntryFormat(options.now ?? Date.now);
    this.#scheduleCare(this.#careEveryMs);
  }

  async get(key: string): Promise<Buffer | undefined> {
    return this.#read(key)?.value;
  }

  async set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    await this.#write(() => this.db.put(key, this.#format.encode(key, value, ttlMs), newVersion()));
  }

  claim(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    return this.#untilDone(async () => {
      const held = this.#read(key);
      if (held?.value) return false;
      return (await this.#replace(key, held, this.#format.encode(key, value, ttlMs))) || undefined;
    });
  }

  acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Promise<Turn> {
    const leaseKey = leaseKeyOf(key);
    return this.#untilDone(async (): Promise<Turn | undefined> => {
      const entry = this.#read(key);
      if (entry?.value && !refused?.equals(entry.value)) return { state: 'found', entry: entry.value };
      const lease = this.#read(leaseKey);
      if (lease?.value) return { state: 'held', owner: lease.value };
      const unchanged: Conditions = [
        [key, entry],
        [leaseKey, lease],
      ];
      const put = () => [this.db.put(leaseKey, this.#format.encode(leaseKey, owner, ttlMs), newVersion())];
      return (await this.#writeIf(unchanged, put)) ? { state: 'taken' } : undefined;
    });
  }

  renew(key: string, owner: Buffer, ttlMs: number): Promise<boolean> {
    const leaseKey = leaseKeyOf(key);
    return this.#untilDone(async () => {
      const lease = this.#read(leaseKey);
      if (!lease?.value?.equals(owner)) return false;
      return (await this.#replace(leaseKey, lease, this.#format.encode(leaseKey, owner, ttlMs))) || undefined;
    });
  }

  settle(key: string, owner: Buffer, { key: target, value, ttlMs }: StoreEntry): Promise<boolean> {
    const entry = this.#format.encode(target, value, ttlMs);
    return this.compareAndDelete(leaseKeyOf(key), owner, () => [this.db.put(target, entry, newVersion())]);
  }

  compareAndDelete(key: string, expected: Buffer, writes = (): Promise<boolean>[] => []): Promise<boolean> {
    return this.#untilDone(async () => {
      const held = this.#read(key);
      if (!held?.value?.equals(expected)) return false;
      return (await this.#writeIf([[key, held]], () => [...writes(), this.db.remove(key)])) || undefined;
    });
  }

  increment(key: string, by: number, ttlMs: number): Promise<number> {
    const add = () => {
      const held = this.#read(key);
      const before = held?.value && countIn(held.value);
      const count = (before ?? 0) + by;
      const leftMs = held && before !== undefined ? held.leftMs : ttlMs;
      this.db.putSync(key, this.#format.encode(key, Buffer.from(String(count)), leftMs), newVersion());
      return count;
    };
    return this.#write(() => this.db.transaction(add));
  }

  /** Also removes the expired entries among them, which must be gone from the disk, not only hidden. */
  async list(prefix: string): Promise<readonly string[]> {
    this.#assertOpen();
    this.db.resetReadTxn();
    const keys = [...this.db.getKeys({ start: prefix, end: `${prefix}\uffff` })];
    const live = await Promise.all(keys.map(async (key) => !(await this.#removeExpired(key))));
    return keys.filter((_, at) => live[at]);
  }

  /** Looks at the next `purgeStep` entries, removes the expired ones and says how many. */
  async purge(): Promise<number> {
    this.#assertOpen();
    this.db.readerCheck(); // readers that were killed would pin old pages and make the file grow
    const limit = this.#purgeStep;
    const keys = [...this.db.getKeys({ start: this.#purgedTo, limit })];
    this.#purgedTo = keys.length < limit ? '' : (keys.at(-1) ?? '');
    return (await Promise.all(keys.map((key) => this.#removeExpired(key)))).filter(Boolean).length;
  }

  async #removeExpired(key: string): Promise<boolean> {
    const held = this.#read(key);
    return held !== undefined && !held.value && this.#write(() => this.db.remove(key, held.version));
  }

  close(): Promise<void> {
    clearTimeout(this.#careTimer);
    // Closes after the pending writes. Has a time limit, because a stopped process may hold the write lock.
    this.#closing ??= timeLimit(() => this.db.close(), 2000).catch(() => undefined);
    return this.#closing;
  }

  /** Reads the newest committed state: the driver's read snapshot may be as old as the current turn of the event loop. */
  #read(key: string): Held | undefined {
    this.#assertOpen();
    try {
      this.db.resetReadTxn();
      const entry = this.db.getEntry(key);
      if (!entry) return undefined;
      const { value: bytes, version = 0 } = entry;
      const { value, leftMs } = this.#format.decode(bytes) ?? { value: undefined, leftMs: 0 };
      return { version, leftMs, value: leftMs > 0 ? value : undefined };
    } catch (error) {
      throw lmdbError(error);
    }
  }

  /** Repeats `step` while it returns undefined because another process wrote in between. */
  async #untilDone<T>(step: () => Promise<T | undefined>): Promise<T> {
    for (let tries = 0; tries < maxTries; tries++) {
      const result = await step();
      if (result !== undefined) return result;
    }
    throw new StoreError('failed');
  }

  /** Writes `entry` unless something was written under `key` since `held` was read; tells whether it did. */
  #replace(key: string, held: Held | undefined, entry: Buffer): Promise<boolean> {
    return this.#writeIf([[key, held]], () => [this.db.put(key, entry, newVersion())]);
  }

  /** Does `writes` if every condition holds; tells whether it did. */
  #writeIf(conditions: Conditions, writes: () => readonly Promise<boolean>[]): Promise<boolean> {
    return this.#write(() => this.#doIf(conditions, writes));
  }

  async #doIf([[key, held], ...others]: Conditions, writes: () => readonly Promise<boolean>[]): Promise<boolean> {
    const done: Promise<boolean>[] = []; // an inner condition that was never looked at counts as held
    const work = () => {
      if (isSome(others)) done.push(this.#doIf(others, writes));
      else for (const write of writes()) write.catch(() => undefined); // the condition's promise tells the outcome
    };
    done.push(held ? this.db.ifVersion(key, held.version, work) : this.db.ifNoExists(key, work));
    return (await Promise.all(done)).every(Boolean);
  }

  async #write<T>(work: () => Promise<T>): Promise<T> {
    this.#assertOpen();
    try {
      return await work();
    } catch (error) {
      throw await errorOfCommit(error);
    }
  }

  get #careEveryMs(): number {
    return this.options.careEveryMs ?? 5000;
  }

  get #purgeStep(): number {
    return this.options.purgeStep ?? 1000;
  }

  #scheduleCare(inMs: number): void {
    if (this.#careEveryMs === 0 || this.#closing) return;
    const care = async () => {
      const removed = await this.purge().catch(() => 0);
      this.#scheduleCare(removed > this.#purgeStep / 4 ? 100 : this.#careEveryMs);
    };
    // Jitter keeps the processes that share the file from purging in step.
    this.#careTimer = setTimeout(care, inMs * (0.75 + Math.random() / 2)).unref();
  }

  #assertOpen(): void {
    if (this.#closing) throw new StoreError('closed');
  }
}

const isSome = (conditions: readonly Condition[]): conditions is Conditions => conditions.length > 0;

/** Random, so that an entry that was written again is never taken for the one that was read. */
const newVersion = () => randomInt(1, 2 ** 48 - 1);
