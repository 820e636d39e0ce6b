import { randomInt } from 'node:crypto';
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { DeleteWaiters, type PollPace } from './DeleteWaiters.js';
import { makeLmdbDirectory, setAside, setAsideDamaged, textOf, unusable } from './lmdbDirectory.js';
import { countIn } from './MemoryStore.js';
import { leaseKeyOf, type Store } from './Store.js';
import { StoreError, type StoreTrouble } from './StoreError.js';
import { timeLimit } from './timeLimit.js';

export interface LmdbStoreOptions {
  /** Pause between two steps of the background purge; 0 switches it off. Default 5 s. */
  readonly purgeEveryMs?: number;
  /** Entries looked at in one step of the purge. Default 1000. */
  readonly purgeStep?: number;
  /** Pace of looking for a deletion by another process. Default 5 ms slowing to 50 ms: a look is a memory read. */
  readonly pollPace?: PollPace;
  /** Wall clock in milliseconds, since the expiry is shared by processes and survives restarts. Default `Date.now`. */
  readonly now?: () => number;
  readonly random?: () => number;
  /** A damaged database was renamed to `name`, in the same directory, and the store begins anew. */
  readonly onSetAside?: (name: string) => void;
}

/** What is stored under a key; without a value when that has expired or is not ours. */
interface Held {
  readonly version: number;
  readonly value?: Buffer;
  readonly expiresAt?: number;
}

const MAX_TRIES = 1000;
const HEADER_BYTES = 9;
const FORMAT = 1;
/** What LMDB says of a file that is no database, of another version, or damaged. */
const damage = /MDB_(CORRUPTED|INVALID|VERSION_MISMATCH|PAGE_NOTFOUND)/;

/**
 * An embedded store on disk, shared by all processes of one machine that open the same directory. It survives restarts
 * and `kill -9`: a write is done once it is committed to the page cache, which outlives the process. (A power
 * cut may lose the last moments, never the consistency of the file.) The file grows as needed and expired entries are
 * purged from it in small steps.
 *
 * Atomic operations read, and then write on condition that the version they read is still there. The condition is checked
 * by the driver's own thread. A transaction with a callback would hold the write lock of all processes until the main thread of this
 * one had time to run it, and a busy process would stall the others.
 *
 * A value is stored as: format byte, expiry as a big-endian double, bytes.
 */
export class LmdbStore implements Store {
  readonly kind = 'lmdb';
  readonly #db: RootDatabase<Buffer, string>;
  readonly #waiters = new DeleteWaiters();
  readonly #options: Required<Omit<LmdbStoreOptions, 'onSetAside'>>;
  #purgeTimer: NodeJS.Timeout | undefined;
  #purgedTo = '';
  #lastIncrement: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  /**
   * Opens or creates the store in `directory`, in place of a damaged one. Throws a `misconfigured` {@link StoreError} that
   * says why it cannot.
   */
  static open(directory: string, options: LmdbStoreOptions = {}): LmdbStore {
    try {
      const path = resolve(directory);
      const data = join(path, 'data.mdb');
      setAsideDamaged(path, options.onSetAside);
      makeLmdbDirectory(path);
      const inode = statSync(data).ino;
      try {
        return new LmdbStore(openDatabase(path), options);
      } catch (error) {
        if (!damage.test(textOf(error))) throw error;
        const isSame = () => statSync(data, { throwIfNoEntry: false })?.ino === inode;
        setAside(path, isSame, options.onSetAside);
        makeLmdbDirectory(path);
        return new LmdbStore(openDatabase(path), options);
      }
    } catch (error) {
      throw unusable(error);
    }
  }

  private constructor(db: RootDatabase<Buffer, string>, options: LmdbStoreOptions) {
    this.#db = db;
    this.#options = {
      purgeEveryMs: options.purgeEveryMs ?? 5000,
      purgeStep: options.purgeStep ?? 1000,
      pollPace: options.pollPace ?? { firstMs: 5, maxMs: 50 },
      now: options.now ?? Date.now,
      random: options.random ?? Math.random,
    };
    this.#schedulePurge(this.#options.purgeEveryMs);
  }

  async get(key: string): Promise<Buffer | undefined> {
    return this.getNow(key);
  }

  getNow(key: string): Buffer | undefined {
    return this.#read(key)?.value;
  }

  async set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    const entry = encode(value, this.#options.now() + ttlMs);
    await this.#write(() => this.#db.put(key, entry, newVersion()));
  }

  async setIfAbsent(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const held = this.#read(key);
      if (held?.value) return false; // most takers of a held lease are told so without waiting for the write lock
      if (await this.#replace(key, held, encode(value, this.#options.now() + ttlMs))) return true;
    }
    throw new StoreError('failed');
  }

  claim(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    return this.setIfAbsent(key, value, ttlMs);
  }

  async setIfHolding(key: string, value: Buffer, ttlMs: number, owner: Buffer): Promise<boolean> {
    const leaseKey = leaseKeyOf(key);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const lease = this.#read(leaseKey);
      if (!lease?.value?.equals(owner)) return false;
      const entry = encode(value, this.#options.now() + ttlMs);
      const put = () => void this.#db.put(key, entry, newVersion()).catch(() => undefined);
      if (await this.#write(() => this.#db.ifVersion(leaseKey, lease.version, put))) return true;
    }
    throw new StoreError('failed');
  }

  async compareAndDelete(key: string, expected: Buffer): Promise<boolean> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const held = this.#read(key);
      if (!held?.value?.equals(expected)) return false;
      if (await this.#write(() => this.#db.remove(key, held.version))) {
        this.#waiters.wake(key);
        return true;
      }
    }
    throw new StoreError('failed');
  }

  /** In turn within this process, so that they do not make each other try again. */
  increment(key: string, by: number, ttlMs: number): Promise<{ count: number; resetsInMs: number }> {
    const result = this.#lastIncrement.then(() => this.#increment(key, by, ttlMs));
    this.#lastIncrement = result.catch(() => undefined);
    return result;
  }

  async #increment(key: string, by: number, ttlMs: number): Promise<{ count: number; resetsInMs: number }> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const held = this.#read(key);
      const now = this.#options.now();
      const before = held?.value && countIn(held.value);
      const count = (before ?? 0) + by;
      const expiresAt = before === undefined ? now + ttlMs : (held?.expiresAt ?? now);
      if (await this.#replace(key, held, encode(Buffer.from(String(count)), expiresAt))) {
        return { count, resetsInMs: expiresAt - now };
      }
    }
    throw new StoreError('failed');
  }

  waitForDelete(key: string, timeoutMs: number): Promise<void> {
    return this.#waiters.waitPolling(key, {
      timeoutMs,
      pace: this.#options.pollPace,
      random: this.#options.random,
      isGone: async () => this.#read(key)?.value === undefined,
    });
  }

  /** One step of the purge: looks at the next `purgeStep` entries, removes the expired ones and says how many. */
  async purge(): Promise<number> {
    this.#assertOpen();
    this.#db.readerCheck(); // readers that were killed would pin old pages and make the file grow
    const { purgeStep } = this.#options;
    const keys = [...this.#db.getKeys({ start: this.#purgedTo, limit: purgeStep })];
    this.#purgedTo = keys.length < purgeStep ? '' : (keys.at(-1) ?? '');
    const removals = keys.map((key) => {
      const held = this.#read(key);
      return held && !held.value ? this.#write(() => this.#db.remove(key, held.version)) : false;
    });
    return (await Promise.all(removals)).filter(Boolean).length;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#purgeTimer);
    this.#waiters.wakeAll();
    // Bounded, because another process may have been stopped while it held the write lock.
    await timeLimit(() => this.#db.close(), 2000).catch(() => undefined);
  }

  /** Reads the newest committed state: the driver's read snapshot may be as old as the current turn of the event loop. */
  #read(key: string): Held | undefined {
    this.#assertOpen();
    try {
      this.#db.resetReadTxn();
      const entry = this.#db.getEntry(key);
      return entry && { version: entry.version ?? 0, ...decode(entry.value, this.#options.now()) };
    } catch (error) {
      throw new StoreError(troubleOfLmdb(error));
    }
  }

  /** Writes `entry` unless somebody changed what was held; tells whether it did. */
  #replace(key: string, held: Held | undefined, entry: Buffer): Promise<boolean> {
    return this.#write(() =>
      held
        ? this.#db.put(key, entry, newVersion(), held.version)
        : this.#db.ifNoExists(key, () => void this.#db.put(key, entry, newVersion()).catch(() => undefined)),
    );
  }

  async #write(work: () => Promise<boolean>): Promise<boolean> {
    this.#assertOpen();
    try {
      return await work();
    } catch (error) {
      throw new StoreError(await troubleOfCommit(error));
    }
  }

  #schedulePurge(inMs: number): void {
    if (this.#options.purgeEveryMs === 0 || this.#closing) return;
    // Jitter keeps the processes that share the file from purging in step.
    this.#purgeTimer = setTimeout(
      async () => {
        const removed = await this.purge().catch(() => 0);
        this.#schedulePurge(removed > this.#options.purgeStep / 4 ? 100 : this.#options.purgeEveryMs);
      },
      inMs * (0.75 + this.#options.random() / 2),
    ).unref();
  }

  #assertOpen(): void {
    if (this.#closing) throw new StoreError('closed');
  }
}

/** Opens what is in `path` and reads its two ends. */
function openDatabase(path: string): RootDatabase<Buffer, string> {
  const db = open<Buffer, string>({
    path,
    noSubdir: false,
    encoding: 'binary',
    useVersions: true,
    separateFlushed: true,
    eventTurnBatching: false, // with it, a failed commit rejects a promise nobody can get hold of
  });
  try {
    for (const reverse of [false, true]) db.getRange({ limit: 1, reverse }).asArray;
    return db;
  } catch (error) {
    void db.close().catch(() => undefined);
    throw error;
  }
}

/** Random, so that an entry written again is never taken for the one that was read before. */
function newVersion(): number {
  return randomInt(1, 2 ** 48 - 1);
}

function encode(value: Buffer, expiresAt: number): Buffer {
  const entry = Buffer.allocUnsafe(HEADER_BYTES + value.length);
  entry[0] = FORMAT;
  entry.writeDoubleBE(expiresAt, 1);
  value.copy(entry, HEADER_BYTES);
  return entry;
}

/** No value when the entry has expired or was not written by us. */
function decode(entry: Buffer, now: number): { value?: Buffer; expiresAt?: number } {
  if (entry.length < HEADER_BYTES || entry[0] !== FORMAT) return {};
  const expiresAt = entry.readDoubleBE(1);
  return expiresAt > now ? { value: entry.subarray(HEADER_BYTES), expiresAt } : {};
}

/** The driver gives the cause of a failed commit as a promise that rejects; left alone, it would end the process. */
async function troubleOfCommit(error: unknown): Promise<StoreTrouble> {
  if (!(typeof error === 'object' && error !== null && 'commitError' in error)) return troubleOfLmdb(error);
  return Promise.resolve(error.commitError).then(() => 'failed', troubleOfLmdb);
}

function troubleOfLmdb(error: unknown): StoreTrouble {
  return /MDB_MAP_FULL|No space left|File too large|Disk quota/i.test(textOf(error)) ? 'full' : 'failed';
}
