import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { endianness } from 'node:os';
import { join, resolve } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { DeleteWaiters, type PollPace } from './DeleteWaiters.js';
import { countIn } from './MemoryStore.js';
import type { Store } from './Store.js';
import { StoreError, type StoreTrouble } from './StoreError.js';

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
}

const FILES = ['data.mdb', 'lock.mdb'];
const HEADER_BYTES = 9;
const FORMAT = 1;

/**
 * An embedded store on disk, shared by all processes of one machine that open the same directory. It survives restarts
 * and `kill -9`: a write is done once its transaction is committed to the page cache, which outlives the process. (A power
 * cut may lose the last moments, never the consistency of the file.) The file grows as needed and expired entries are
 * purged from it in small steps.
 *
 * A value is stored as: format byte, expiry as a big-endian double, bytes.
 */
export class LmdbStore implements Store {
  readonly kind = 'lmdb';
  readonly #db: RootDatabase<Buffer, string>;
  readonly #waiters = new DeleteWaiters();
  readonly #options: Required<LmdbStoreOptions>;
  #purgeTimer: NodeJS.Timeout | undefined;
  #purgedTo = '';
  #closing: Promise<void> | undefined;

  /** Opens or creates the store in `directory`. Throws a `misconfigured` {@link StoreError} that says why it cannot. */
  static open(directory: string, options: LmdbStoreOptions = {}): LmdbStore {
    try {
      const path = resolve(directory);
      preparePrivateFiles(path);
      assertDatabase(join(path, 'data.mdb'));
      return new LmdbStore(open({ path, noSubdir: false, encoding: 'binary', separateFlushed: true }), options);
    } catch (error) {
      const why = error instanceof Error ? error.message : 'unknown error';
      throw new StoreError('misconfigured', `CACHE_URL: the directory of lmdb: cannot be opened: ${why}`);
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
    return this.#read(key)?.value;
  }

  async set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    const entry = encode(value, this.#options.now() + ttlMs);
    await this.#transaction(() => void this.#db.put(key, entry));
  }

  async setIfAbsent(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    // Most takers of a held lease are told so by a memory read and never queue for the write lock.
    if (this.#read(key)) return false;
    return this.#transaction(() => {
      if (this.#decode(this.#db.get(key))) return false;
      void this.#db.put(key, encode(value, this.#options.now() + ttlMs));
      return true;
    });
  }

  async compareAndDelete(key: string, expected: Buffer): Promise<boolean> {
    const deleted = await this.#transaction(() => {
      if (!this.#decode(this.#db.get(key))?.value.equals(expected)) return false;
      void this.#db.remove(key);
      return true;
    });
    if (deleted) this.#waiters.wake(key);
    return deleted;
  }

  increment(key: string, by: number, ttlMs: number): Promise<{ count: number; resetsInMs: number }> {
    return this.#transaction(() => {
      const now = this.#options.now();
      const entry = this.#decode(this.#db.get(key));
      const held = entry ? countIn(entry.value) : undefined;
      const count = (held ?? 0) + by;
      const expiresAt = entry && held !== undefined ? entry.expiresAt : now + ttlMs;
      void this.#db.put(key, encode(Buffer.from(String(count)), expiresAt));
      return { count, resetsInMs: expiresAt - now };
    });
  }

  waitForDelete(key: string, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    return this.#waiters.waitPolling(key, {
      timeoutMs,
      signal,
      pace: this.#options.pollPace,
      random: this.#options.random,
      isGone: async () => this.#read(key) === undefined,
    });
  }

  /** One step of the purge: looks at the next `purgeStep` entries, removes the expired ones and says how many. */
  async purge(): Promise<number> {
    this.#assertOpen();
    this.#db.readerCheck(); // readers that were killed would pin old pages and make the file grow
    const { purgeStep } = this.#options;
    const keys = [...this.#db.getKeys({ start: this.#purgedTo, limit: purgeStep })];
    this.#purgedTo = keys.length < purgeStep ? '' : (keys.at(-1) ?? '');
    const expired = keys.filter((key) => !this.#decode(this.#db.get(key)));
    if (expired.length === 0) return 0;
    return this.#transaction(() => {
      const still = expired.filter((key) => !this.#decode(this.#db.get(key)));
      for (const key of still) void this.#db.remove(key);
      return still.length;
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#purgeTimer);
    this.#waiters.wakeAll();
    await this.#db.close();
  }

  /** Reads the newest committed state: the driver's read snapshot may be as old as the current turn of the event loop. */
  #read(key: string): { value: Buffer; expiresAt: number } | undefined {
    this.#assertOpen();
    try {
      this.#db.resetReadTxn();
      return this.#decode(this.#db.get(key));
    } catch (error) {
      throw new StoreError(troubleOfLmdb(error));
    }
  }

  #decode(entry: Buffer | undefined): { value: Buffer; expiresAt: number } | undefined {
    if (!entry || entry.length < HEADER_BYTES || entry[0] !== FORMAT) return undefined;
    const expiresAt = entry.readDoubleBE(1);
    return expiresAt > this.#options.now() ? { value: entry.subarray(HEADER_BYTES), expiresAt } : undefined;
  }

  /** Runs `work` under the write lock of the file; `work` must not throw. The lock is waited for off the main thread. */
  async #transaction<T>(work: () => T): Promise<T> {
    this.#assertOpen();
    try {
      return await this.#db.transaction(work);
    } catch (error) {
      throw new StoreError(troubleOfLmdb(error));
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

/** Creates what LMDB would create with the process's umask, so that nobody else on the machine can read it at any moment. */
function preparePrivateFiles(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // A directory that holds other things (say, /tmp) is not ours to close to others, and a mounted volume may belong to
  // someone else; the files are private in any case.
  const ours = readdirSync(directory).every((name) => FILES.includes(name));
  if (ours && statSync(directory).uid === process.getuid?.()) chmodSync(directory, 0o700);
  const present = readdirSync(directory);
  for (const name of FILES) {
    // Never open and close a lock file that is there: POSIX drops a process's locks on a file when it closes any descriptor
    // of it, and another instance in this process would then pass for dead.
    if (!present.includes(name)) createPrivate(join(directory, name));
    chmodSync(join(directory, name), 0o600);
  }
}

function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, 'ax', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error; // a sibling was faster
  }
}

/** LMDB's own check comes too late: opening a file that is something else, or cut off, ends the process with a segmentation fault. */
function assertDatabase(file: string): void {
  const header = Buffer.alloc(8192);
  const descriptor = openSync(file, 'r');
  const length = readSync(descriptor, header, 0, header.length, 0);
  closeSync(descriptor);
  const magic = endianness() === 'LE' ? header.readUInt32LE(24) : header.readUInt32BE(24);
  if (length === 0 || (length === header.length && magic === 0xbeefc0de)) return;
  throw new Error('data.mdb is damaged or something else; name another directory or remove it');
}

function encode(value: Buffer, expiresAt: number): Buffer {
  const entry = Buffer.allocUnsafe(HEADER_BYTES + value.length);
  entry[0] = FORMAT;
  entry.writeDoubleBE(expiresAt, 1);
  value.copy(entry, HEADER_BYTES);
  return entry;
}

function troubleOfLmdb(error: unknown): StoreTrouble {
  const message = error instanceof Error ? error.message : '';
  return /MDB_MAP_FULL|No space left|File too large|Disk quota/i.test(message) ? 'full' : 'failed';
}
