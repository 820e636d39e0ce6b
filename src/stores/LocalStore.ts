import { heapPart } from '../process/memory.js';
import { copyOf, Journal, type JournalOptions, type Kept, readJournal } from './journal.js';
import {
  type Acquired,
  type Field,
  type Item,
  type Outcome,
  type Place,
  type PutWhen,
  type Store,
  type Stored,
  type Wish,
} from './Store.js';
import { StoreError } from './StoreError.js';

/** How often what has expired is dropped, in milliseconds. */
const sweepEveryMs = 60_000;
/** The size of an entry besides its value, in bytes: about what key, object and map take. */
const entryBytes = 300;

/**
 * The store of one process: a map and, for `file:`, its journal. Every reader gets the value or may fetch it: a process needs
 * no leases against itself. When it grows too large, it drops the fields used least recently, but never an item: promises
 * depend on counters, pauses and idempotency keys. Times are monotonic.
 */
export class LocalStore implements Store {
  /** Items by their key, and fields by {@link keyOf}; the field used last comes last. */
  readonly #held = new Map<string, Kept>();
  #bytes = 0;
  #journal: Journal | undefined;
  #isClosed = false;
  #sweepAt = 0;
  /** Whether the last sweep left it full, with items alone. Then none is made for a new entry before the next regular one. */
  #isFull = false;

  /** The store of `directory`, kept in its journal. @throws ConfigError */
  static async open(directory: string, options: JournalOptions): Promise<LocalStore> {
    const store = new LocalStore();
    store.#journal = await Journal.open(directory, store.#held, options);
    for (const kept of store.#held.values()) store.#bytes += sizeOf(kept);
    return store;
  }

  /** Reads what `directory` holds now, even while a gateway uses it. Writes nothing there. */
  static async read(directory: string): Promise<LocalStore> {
    const store = new LocalStore();
    await readJournal(directory, store.#held);
    return store;
  }

  constructor(private readonly mostBytes = heapPart(4, 1 << 27)) {}

  async acquire(place: Place, { refused }: Wish): Promise<Acquired> {
    const stored = this.find(place, refused);
    return stored ? { state: 'found', stored } : { state: 'taken', now: performance.now() };
  }

  async settle(place: Place, _owner: string, outcome: Outcome): Promise<boolean> {
    if ('failure' in outcome) return true;
    this.#checkUsable();
    const { value, version, ageMs, ttlMs } = outcome;
    const now = performance.now();
    await this.#set(keyOf(place), { value, version, writtenAt: now - ageMs, endsAt: now + ttlMs });
    return true;
  }

  /** Erases the record from memory and file. Only a command does, while no gateway has the directory: no read is under way. */
  async forget(record: string): Promise<number> {
    this.#checkUsable();
    const keys = this.#keysOf(record);
    for (const key of keys) void this.#drop(key);
    await this.#journal?.rewrite();
    return keys.length;
  }

  /** Nobody else would read it. */
  async note(_list: string, _note: Buffer): Promise<void> {}

  async notesSince(_list: string, mark: number): ReturnType<Store['notesSince']> {
    return { notes: [], mark };
  }

  async fields(record: string): Promise<readonly Field[]> {
    const now = performance.now();
    return this.#keysOf(record).flatMap((key) => {
      const kept = this.#live(key);
      if (kept === undefined) return [];
      return { name: key.slice(record.length + 1), ageMs: now - kept.writtenAt, leftMs: kept.endsAt - now };
    });
  }

  async get(key: string): Promise<Item | undefined> {
    const kept = this.#live(key);
    return kept && { value: kept.value, leftMs: kept.endsAt - performance.now() };
  }

  async put(key: string, value: Buffer, ttlMs: number, when: PutWhen): Promise<boolean> {
    const kept = this.#live(key);
    const writtenAt = performance.now();
    const endsAt = writtenAt + ttlMs;
    if (kept && (when === 'if-absent' || (when === 'if-longer' && kept.endsAt >= endsAt))) return false;
    const journal = when === 'if-absent' ? this.#journal : undefined;
    if (journal?.failure) throw journal.failure; // first: else the journal would remember each claim that is refused
    await this.#set(key, { value, version: '', writtenAt, endsAt });
    if (journal?.failure === undefined) return true;
    void this.#drop(key); // a claim that is not in the file must not count: a restart would forget it
    throw journal.failure;
  }

  async deleteIf(key: string, expected: Buffer): Promise<boolean> {
    if (!this.#live(key)?.value.equals(expected)) return false;
    await this.#drop(key);
    return true;
  }

  async increment(key: string, ttlMs: number) {
    const now = performance.now();
    const kept = this.#live(key) ?? { value: undefined, version: '', writtenAt: now, endsAt: now + ttlMs };
    const count = (Number(kept.value) || 0) + 1;
    await this.#set(key, { ...kept, value: Buffer.from(String(count)) });
    return { count, leftMs: kept.endsAt - now };
  }

  async close(): Promise<void> {
    this.#isClosed = true; // first: what came after the last write would be lost
    await this.#journal?.close();
  }

  /** The value at `place`, which now counts as used last; undefined if there is none, or its version is refused. */
  protected find(place: Place, refused: string | undefined): Stored | undefined {
    const key = keyOf(place);
    const kept = this.#live(key);
    if (kept === undefined || kept.version === refused) return undefined;
    this.#held.delete(key);
    this.#held.set(key, kept);
    return { version: kept.version, value: kept.value, ageMs: performance.now() - kept.writtenAt };
  }

  /** Looks through all keys, which is slow: only an operator's commands forget or show a whole record. */
  #keysOf(record: string): readonly string[] {
    return [...this.#held.keys()].filter((key) => key.startsWith(`${record}${separator}`));
  }

  #checkUsable(): void {
    if (this.#isClosed) throw new StoreError('closed');
  }

  #live(key: string): Kept | undefined {
    this.#checkUsable();
    const kept = this.#held.get(key);
    return kept && kept.endsAt > performance.now() ? kept : undefined;
  }

  /** Copies the value: its buffer may be used again. */
  async #set(key: string, kept: Kept): Promise<void> {
    if (!this.#held.has(key)) this.#makeRoom();
    this.#bytes += sizeOf(kept) - sizeOf(this.#held.get(key));
    this.#held.delete(key);
    this.#held.set(key, { ...kept, value: copyOf(kept.value) });
    await this.#journal?.changed(key);
  }

  #drop(key: string): Promise<void> | undefined {
    this.#bytes -= sizeOf(this.#held.get(key));
    this.#held.delete(key);
    return this.#journal?.changed(key);
  }

  /**
   * Drops what has expired and, when the store is full, the fields used least recently: more than needed, so that this is rare.
   * @throws StoreError `refused` when items take all the room
   */
  #makeRoom(): void {
    const now = performance.now();
    const isOver = this.#bytes >= this.mostBytes;
    if ((isOver && !this.#isFull) || now >= this.#sweepAt) {
      this.#sweepAt = now + sweepEveryMs;
      for (const [key, { endsAt }] of this.#held) {
        const isField = key.includes(separator);
        if (endsAt <= now || (isOver && isField && this.#bytes >= 0.9 * this.mostBytes)) void this.#drop(key);
      }
    }
    this.#isFull = this.#bytes >= this.mostBytes;
    if (this.#isFull) throw new StoreError('refused', 'EFULL');
  }
}

/** Names hold no space, so no two places have the same key, and none has the key of an item. */
const separator = ' ';
const keyOf = ({ record, field }: Place): string => record + separator + field;

const sizeOf = (kept: Kept | undefined): number => (kept === undefined ? 0 : entryBytes + kept.value.length);
