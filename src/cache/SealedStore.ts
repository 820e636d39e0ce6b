import type { Config } from '../config/config.js';
import { LocalStore } from '../stores/LocalStore.js';
import type { Acquired, Field, Item, Outcome, Place, Store, Wish } from '../stores/Store.js';
import { StoreError } from '../stores/StoreError.js';
import type { Sealer } from './Sealer.js';

/** The name of an item as readable parts. */
type ItemName = readonly string[];

/** As stored: a forgotten subject, and a random id of this request to forget it. Each process acts on an id once. */
export interface Forgotten {
  readonly id: string;
  readonly subject: string;
}

/** A cool-down as stored. */
interface CoolDown {
  readonly value: string;
  readonly ttlMs: number;
}

/** The service and its client are part of every name; a field that was read in another version counts as absent. */
export interface SealedStoreOptions
  extends Pick<Config, 'UPSTREAM_BASE_URL' | 'UPSTREAM_CLIENT_ID' | 'UPSTREAM_API_VERSION'> {
  readonly store: Store;
  readonly sealer: Sealer;
}

/** Pause between the tries of a write that must not be lost, in milliseconds. */
const againMs = 1000;
/** For this long the system may still deliver what was sent on a connection that was given up, in milliseconds. */
const lateMs = 120_000;
const forgottenList = ['forgotten'];

/**
 * JSON values in a {@link Store} that sees neither names nor values: names are HMACs; values are encrypted and bound to their
 * names, those of fields also to their versions. One that does not decrypt (tampered with, foreign, moved) reads as undefined.
 */
export class SealedStore {
  /** The cool-downs that this process began, at most 4 MiB of them: the shared store may not have taken them. */
  readonly #ownCoolDowns = new LocalStore(4 << 20);

  constructor(private readonly options: SealedStoreOptions) {}

  async acquire(place: Place, wish: Wish): Promise<Acquired<unknown, unknown>> {
    const acquired = await this.options.store.acquire(place, wish);
    if (acquired.state === 'failed') return { ...acquired, failure: this.#open(failureName(place), acquired.failure) };
    if (acquired.state !== 'found') return acquired;
    const { stored } = acquired;
    const value = this.#open(this.#valueName(place, stored.version), stored.value);
    return { ...acquired, stored: { ...stored, value } };
  }

  settle(place: Place, owner: string, outcome: Outcome<unknown, object>): Promise<boolean> {
    const sealed =
      'failure' in outcome
        ? { failure: outcome.failure && this.#seal(failureName(place), outcome.failure) }
        : { ...outcome, value: this.#seal(this.#valueName(place, outcome.version), outcome.value) };
    return this.options.store.settle(place, owner, sealed);
  }

  /** Erases everything about the subject, then tells every process to do so. Returns how many fields there were. */
  async forget(forgotten: Forgotten): Promise<number> {
    const { store } = this.options;
    const erased = await store.forget(this.#recordOf(forgotten.subject));
    const list = this.keyOf(forgottenList);
    await store.note(list, this.#seal(list, forgotten));
    return erased;
  }

  /** As `Store.notesSince`, without notes that cannot be read. */
  async notesSince(since: number) {
    const list = this.keyOf(forgottenList);
    const { notes, mark } = await this.options.store.notesSince(list, since);
    return { notes: notes.flatMap((note) => (this.#open(list, note) as Forgotten | undefined) ?? []), mark };
  }

  /** Which fields are stored about the subject. */
  fields(subject: string): Promise<readonly Field[]> {
    return this.options.store.fields(this.#recordOf(subject));
  }

  async get(name: ItemName): Promise<Item<unknown> | undefined> {
    const key = this.keyOf(name);
    const item = await this.options.store.get(key);
    return item && { ...item, value: this.#open(key, item.value) };
  }

  put(name: ItemName, value: unknown, ttlMs: number): Promise<boolean> {
    const key = this.keyOf(name);
    return this.options.store.put(key, this.#seal(key, value), ttlMs, 'always');
  }

  /** Writes now or, if the store does not take it, as soon as it does. Resolves after the first try; never rejects. */
  writeSurely(name: ItemName, value: unknown, ttlMs: number): Promise<void> {
    return this.#untilDone(() => this.put(name, value, ttlMs));
  }

  /**
   * Claims `name`. Returns a function that withdraws the claim unless it was overwritten; undefined if the name is taken.
   * @throws StoreError when the store does not answer; then withdraws what it may have written, also if that arrives late
   */
  async claim(name: ItemName, value: unknown, ttlMs: number): Promise<(() => Promise<void>) | undefined> {
    const { store } = this.options;
    const key = this.keyOf(name);
    const bytes = this.#seal(key, value);
    const withdraw = (arrivesUntil = 0) =>
      this.#untilDone(async () => {
        const wasThere = await store.deleteIf(key, bytes);
        if (!wasThere && performance.now() < arrivesUntil) throw new StoreError('refused'); // tried again: it may still arrive
      });
    try {
      return (await store.put(key, bytes, ttlMs, 'if-absent')) ? withdraw : undefined;
    } catch (error) {
      if ((error as StoreError).mayBeDone) void withdraw(performance.now() + lateMs);
      throw error;
    }
  }

  /** Begins a cool-down: a value that holds back calls of the fleet for `ttlMs`, unless there is one that lasts longer. */
  async beginCoolDown(name: ItemName, value: string, ttlMs: number): Promise<void> {
    const key = this.keyOf(name);
    const bytes = this.#seal(key, { value, ttlMs });
    const stores = [this.options.store, this.#ownCoolDowns];
    await Promise.allSettled(stores.map((store) => store.put(key, bytes, ttlMs, 'if-longer')));
  }

  /**
   * The fleet's cool-down, or else this process's own. A cool-down with more time left than its full length counts as over: the
   * store's clock was set back.
   */
  async coolDown(name: ItemName): Promise<Item<string> | undefined> {
    const key = this.keyOf(name);
    for (const store of [this.options.store, this.#ownCoolDowns]) {
      const item = await store.get(key).catch(() => undefined);
      const begun = item && (this.#open(key, item.value) as CoolDown | undefined);
      if (begun && item.leftMs <= begun.ttlMs) return { value: begun.value, leftMs: item.leftMs };
    }
    return undefined;
  }

  /** Adds one to the counter with a key of {@link SealedStore.keyOf}, as `Store.increment`. */
  increment(key: string, ttlMs: number) {
    return this.options.store.increment(key, ttlMs);
  }

  keyOf(name: ItemName): string {
    const { UPSTREAM_BASE_URL, UPSTREAM_CLIENT_ID, sealer } = this.options;
    return sealer.name([UPSTREAM_BASE_URL, UPSTREAM_CLIENT_ID, ...name]);
  }

  /** The field about `subject` with an entry of this kind; `id` tells several apart. Only keyed hashes leave the process. */
  placeOf(kind: string, subject: string, id?: string): Place {
    const field = id === undefined ? kind : `${kind}:${this.options.sealer.name([kind, id]).slice(0, 22)}`;
    return { record: this.#recordOf(subject), field };
  }

  #recordOf(subject: string): string {
    return this.keyOf(['subject', subject]);
  }

  #valueName({ record, field }: Place, version: string): string {
    return `${record} ${field} ${version} ${this.options.UPSTREAM_API_VERSION}`;
  }

  /** Tries `work` once and resolves; goes on trying in the background until it succeeds or the store is closed. */
  async #untilDone(work: () => Promise<unknown>): Promise<void> {
    await work().catch(({ trouble }: StoreError) => {
      if (trouble !== 'closed') setTimeout(() => this.#untilDone(work), againMs).unref();
    });
  }

  #seal(name: string, value: unknown): Buffer {
    return this.options.sealer.seal(name, Buffer.from(JSON.stringify(value)));
  }

  #open(name: string, bytes: Buffer): unknown {
    const opened = this.options.sealer.open(name, bytes);
    return opened && JSON.parse(String(opened));
  }
}

const failureName = ({ record, field }: Place): string => `${record} ${field}:failure`;
