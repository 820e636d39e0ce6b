import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { inTime } from '../process/pause.js';
import { ConfigError, codeOf } from '../process/systemErrors.js';
import { DirectoryLock, type Wait } from './DirectoryLock.js';
import type { StoreHooks } from './guarded.js';
import { StoreError } from './StoreError.js';

/** A value that the map holds; times are of this process's monotonic clock. */
export interface Kept {
  readonly value: Buffer;
  readonly version: string;
  readonly writtenAt: number;
  readonly endsAt: number;
}

export interface JournalOptions extends StoreHooks, Wait {
  /** The file was damaged; what stood before the damage is used, and the file is written anew from that. */
  readonly onDamaged?: () => void;
}

/** How often the lock is renewed, and a write that failed is repeated, in milliseconds. A write that takes longer has failed. */
const renewEveryMs = 1000;
/** A file is written anew once it is larger than twice its size at the last try to write it anew, plus this. */
const slackBytes = 1 << 20;
const chunkRecords = 64;
const headerBytes = 8;

/**
 * Puts what a journal holds into `map`. Stops at the first record that is not whole, and tells whether there was one.
 * @throws ConfigError when the file cannot be read
 */
export async function readJournal(directory: string, map: Map<string, Kept>): Promise<boolean> {
  const bytes = await readFile(join(directory, 'journal')).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? Buffer.of() : unusable(directory, error),
  );
  let at = 0;
  while (at + headerBytes <= bytes.length) {
    const end = at + headerBytes + bytes.readUInt32LE(at + 4);
    if (end > bytes.length || crc32(bytes.subarray(at + 4, end)) !== bytes.readUInt32LE(at)) break;
    const record = decode(bytes.subarray(at + headerBytes, end));
    if (record === undefined) break;
    const [key, kept] = record;
    map.delete(key); // otherwise the key would keep its place: what was written last comes last
    if (kept.endsAt > performance.now()) map.set(key, kept);
    at = end;
  }
  return at < bytes.length;
}

/**
 * Keeps the map of a store in a file, to find it again after a restart. One write at a time appends the present state of all
 * changed keys; when it fails, that is reported once, and it is repeated each second. A file that is lost or has grown too
 * large is written anew from the map. Only a new file is synced: a power cut loses the last seconds, `kill -9` nothing.
 */
export class Journal {
  #file: FileHandle | undefined;
  #size = 0;
  /** The file is written anew when it has more bytes than this. */
  #rewriteAbove = 0;
  /** The keys whose present state is not in the file. */
  #unwritten = new Set<string>();
  #writing: Promise<void> | undefined;
  /** Why the last write failed: a restart would forget what is not in the file. */
  failure: StoreError | undefined;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  private constructor(
    private readonly directory: string,
    private readonly lock: DirectoryLock,
    private readonly map: ReadonlyMap<string, Kept>,
    private readonly options: JournalOptions,
  ) {}

  /**
   * Fills `map` from the file.
   * @throws ConfigError when the directory cannot be used or another process uses it
   */
  static async open(directory: string, map: Map<string, Kept>, options: JournalOptions): Promise<Journal> {
    let lock: DirectoryLock | undefined;
    try {
      lock = await DirectoryLock.take(directory, options);
      if (await readJournal(directory, map)) options.onDamaged?.();
      await lock.renew(); // a long read may outlast the lock
    } catch (error) {
      await lock?.release();
      return unusable(directory, error as NodeJS.ErrnoException);
    }
    const journal = new Journal(directory, lock, map, options);
    journal.#renewSoon();
    await journal.rewrite().catch(() => undefined); // it was reported
    return journal;
  }

  /** Resolves when the present state of `key` is written, or when writing has failed and that was reported. */
  async changed(key: string): Promise<void> {
    this.#unwritten.add(key);
    if (this.failure !== undefined) return;
    const slow = () => new StoreError('timed-out', undefined, false);
    await inTime(renewEveryMs, this.#writeNext(), slow).catch((error) => this.#report(error));
  }

  /** Writes the file anew, so that nothing of what was erased is left in it. @throws StoreError */
  async rewrite(): Promise<void> {
    this.#rewriteAbove = 0; // so that the next write replaces a file that has anything in it
    await this.#writeNext();
    if (this.failure !== undefined) throw this.failure;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#writeNext();
    await this.#closeFile();
    await this.lock.release();
  }

  async #writeNext(): Promise<void> {
    await this.#writing; // that write may have begun before the change
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing; // of many that waited, the first has begun it for all
  }

  async #write(): Promise<void> {
    const keys = this.#unwritten;
    this.#unwritten = new Set();
    try {
      if (this.#file === undefined || this.#size > this.#rewriteAbove) await this.#writeAnew();
      else await this.#append(this.#file, [...keys]);
      await this.lock.check(); // a process that stood still may have written to a file that its successor has replaced
      this.#report(undefined);
    } catch (error) {
      for (const key of keys) this.#unwritten.add(key);
      this.#report(storeErrorOf(error));
    }
  }

  async #append(file: FileHandle, keys: readonly string[]): Promise<void> {
    try {
      this.#size += await this.#writeRecords(file, keys);
    } catch (error) {
      // A part may have been written, and nothing after it could be read. If it cannot be cut off, a new file is needed.
      await file.truncate(this.#size).catch(() => this.#closeFile());
      throw error;
    }
  }

  async #writeAnew(): Promise<void> {
    this.#rewriteAbove = 2 * this.#size + slackBytes; // if this fails (full disk), the next writes only append
    await this.lock.check(); // otherwise `journal.new` may be that of another process
    const path = join(this.directory, 'journal');
    await rm(`${path}.new`, { force: true }); // not reused: a process that stood still may have it open
    const file = await open(`${path}.new`, 'ax', 0o600);
    let size: number;
    try {
      size = await this.#writeRecords(file, [...this.map.keys()]);
      await file.datasync(); // otherwise a power cut may leave an empty file under the name
      await this.lock.check(); // a process that stood still must not rename over its successor's file
    } catch (error) {
      await file.truncate().catch(() => undefined); // a full disk needs the room
      await file.close();
      throw error;
    }
    await this.#closeFile();
    this.#file = file;
    await rename(`${path}.new`, path).catch(async (error) => {
      await this.#closeFile(); // a network file system may have renamed it all the same
      throw error;
    });
    this.#size = size;
    this.#rewriteAbove = 2 * size + slackBytes;
  }

  /** Closes the file, so that the next write makes a new one. A network file system may report a fault only now. */
  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close().catch(() => undefined);
  }

  /** Writes the present state of `keys` at the end of the file; returns how many bytes it takes. */
  async #writeRecords(file: FileHandle, keys: readonly string[]): Promise<number> {
    let size = 0;
    for (let first = 0; first < keys.length; first += chunkRecords) {
      const chunk = keys.slice(first, first + chunkRecords);
      const bytes = Buffer.concat(chunk.map((key) => encode(key, this.map.get(key))));
      await file.appendFile(bytes);
      size += bytes.length;
    }
    return size;
  }

  #renewSoon(): void {
    this.#timer = setTimeout(async () => {
      const failure = await this.lock.renew().then(() => undefined, storeErrorOf);
      if (this.#isClosed) return;
      if (failure !== undefined) this.#report(failure);
      else void this.#writeNext();
      this.#renewSoon();
    }, renewEveryMs).unref();
  }

  /** Reports when writing begins to fail, and when it works again. */
  #report(failure: StoreError | undefined): void {
    if ((failure === undefined) === (this.failure === undefined)) return;
    this.failure = failure;
    this.options.onTrouble?.(failure);
  }
}

/** A copy that keeps no other bytes in memory: Node.js makes a short buffer a part of eight kilobytes. */
export const copyOf = (bytes: Buffer): Buffer => Buffer.alloc(bytes.length, bytes);

/** A record: checksum (4 bytes), length of the body (4), body (a line of JSON, then the value). A deleted key has no time left. */
function encode(key: string, kept: Kept | undefined): Buffer {
  const now = performance.now();
  const left = kept ? kept.endsAt - now : 0;
  const line = [key, Date.now(), Math.ceil(left), kept ? Math.round(now - kept.writtenAt) : 0, kept?.version ?? ''];
  const body = Buffer.concat([Buffer.from(`${JSON.stringify(line)}\n`), kept?.value ?? Buffer.of()]);
  const record = Buffer.concat([Buffer.alloc(headerBytes), body]);
  record.writeUInt32LE(body.length, 4);
  record.writeUInt32LE(crc32(record.subarray(4)), 0);
  return record;
}

/**
 * Reads a record; undefined for what {@link encode} did not write. The time since it was written counts, too. A wall clock that
 * was set back does not make it last longer.
 */
function decode(body: Buffer): readonly [string, Kept] | undefined {
  const lineEnd = body.indexOf('\n');
  const value = copyOf(body.subarray(lineEnd + 1));
  try {
    const [key, writtenAt, leftMs, ageMs, version] = JSON.parse(body.toString('utf8', 0, lineEnd));
    const passedMs = Math.max(0, Date.now() - writtenAt);
    const now = performance.now();
    return [key, { value, version, writtenAt: now - ageMs - passedMs, endsAt: now + leftMs - passedMs }];
  } catch {
    return undefined;
  }
}

function unusable(directory: string, error: NodeJS.ErrnoException): never {
  if (error instanceof ConfigError) throw error;
  throw new ConfigError(`CACHE_URL: the directory ${directory} cannot be opened: ${error.code}`);
}

function storeErrorOf(error: unknown): StoreError {
  return error instanceof StoreError ? error : new StoreError('refused', codeOf(error));
}
