import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, Circuit } from './Circuit.js';
import { MemoryStore } from './MemoryStore.js';
import { type Count, leaseKeyOf, type Store, type StoreEntry, type Turn } from './Store.js';
import { StoreError, type StoreTrouble } from './StoreError.js';
import { WriteJournal } from './WriteJournal.js';

export interface FallbackStoreOptions {
  /** Longest wait for the primary per operation. Default 250 ms. */
  readonly limitMs?: number;
  /** Pause between two probes of a primary that failed. Default 1000 ms. */
  readonly probeEveryMs?: number;
  /** The primary stopped answering; once per episode. */
  readonly onDegraded?: (trouble: StoreTrouble) => void;
  /** The primary answers again, reads and writes; once per episode. */
  readonly onRecovered?: (durationMs: number) => void;
  readonly now?: () => number;
}

const failuresToOpen = 2;
/** Most entries held locally during an outage. */
const maxEntries = 10_000;
/** Several keys, because a cluster keeps them on several servers. */
const probeKeys = Array.from({ length: 8 }, (_, n) => `probe-${n}`);
const probeValue = Buffer.from('probe');

/**
 * Keeps the gateway answering when the shared store cannot: whatever the primary does not do in time is done in a store
 * of this process, so a lease excludes the other requests of this process. No operation rejects, except {@link increment}
 * and {@link claim}, which only the primary can decide, and what comes after {@link close}.
 *
 * Reads and writes have separate circuits, because a store that is full or a read-only replica can still be read. An open
 * circuit costs a request nothing; a background probe closes it. When the primary is back it is told what was written
 * in the meantime ({@link WriteJournal}).
 */
export class FallbackStore implements Store {
  readonly kind: Store['kind'];
  readonly #primary: Store;
  readonly #local: MemoryStore;
  readonly #journal: WriteJournal;
  readonly #reads: Circuit;
  readonly #writes: Circuit;
  readonly #options: FallbackStoreOptions;
  readonly #probeEveryMs: number;
  readonly #now: () => number;
  #degradedSince: number | undefined;
  #recoveredAt = Number.NEGATIVE_INFINITY;
  #probeMs: number;
  #probeTimer: NodeJS.Timeout | undefined;
  #delivery: Promise<void> | undefined;
  #closed = false;

  constructor(primary: Store, options: FallbackStoreOptions = {}) {
    const { limitMs = 250, probeEveryMs = 1000, now = () => performance.now() } = options;
    this.kind = primary.kind;
    this.#primary = primary;
    this.#options = options;
    this.#probeEveryMs = probeEveryMs;
    this.#probeMs = probeEveryMs;
    this.#now = now;
    this.#local = new MemoryStore({ maxEntries, now });
    this.#journal = new WriteJournal(maxEntries, now);
    const onOpen = (trouble: StoreTrouble) => this.#onOpen(trouble);
    const circuit = { limitMs, failuresToOpen, onOpen, onClose: () => this.#onClose() };
    this.#reads = new Circuit(circuit);
    this.#writes = new Circuit(circuit);
  }

  /** Whether some operations are being done in this process only. */
  get degraded(): boolean {
    return this.#degradedSince !== undefined;
  }

  /** Asks the primary whether it is there, so that a dead one is known at start and not found out by the first request. */
  async start(): Promise<void> {
    for (let tries = 0; tries < failuresToOpen && !this.degraded && !(await this.#probe()); tries++);
  }

  async get(key: string): Promise<Buffer | undefined> {
    this.#assertOpen();
    return (await this.#heldHere(key)) ?? (await this.#readPrimary(key)) ?? (await this.#local.get(key));
  }

  async set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    this.#assertOpen();
    this.#journal.forget(key); // before, not after: a delivery in progress must not write the older value over this one
    const answer = await this.#write(() => this.#primary.set(key, value, ttlMs));
    if (answer.answered) return this.#forgetLocally(key);
    await this.#local.set(key, value, ttlMs);
    this.#journal.add(key, { kind: 'set', expiresAt: this.#now() + ttlMs });
  }

  /** Never decided in this process: the others could not see it. One whose answer was lost is withdrawn once that is possible. */
  async claim(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    this.#assertOpen();
    if (await this.#heldHere(key)) return false;
    const answer = await this.#write(() => this.#primary.claim(key, value, ttlMs));
    if (answer.answered) return answer.value;
    const seen = await this.#readPrimary(key); // one that takes no writes can often be read
    if (seen) return seen.equals(value);
    if (answer.asked) this.#journal.addDeletion(key, value);
    throw new StoreError('unreachable');
  }

  /** In one operation as long as the primary answers and nothing is pending; otherwise step by step, by the rules above. */
  async acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Promise<Turn> {
    const leaseKey = leaseKeyOf(key);
    this.#assertOpen();
    let answer: Answer<Turn> | undefined;
    if (!this.#journal.get(key) && !this.#journal.get(leaseKey)) {
      answer = await this.#write(() => this.#primary.acquire(key, owner, ttlMs, refused));
      const turn = answer.answered ? answer.value : undefined;
      if (turn?.state === 'taken') this.#journal.forget(leaseKey);
      if (turn && !(turn.state === 'found' && this.#journal.isDeleted(key, turn.entry))) return turn;
    }
    const entry = await this.get(key);
    if (entry && !refused?.equals(entry)) return { state: 'found', entry };
    if (await this.#takeLease(leaseKey, owner, ttlMs, answer)) return { state: 'taken' };
    const holder = await this.get(leaseKey);
    return holder?.equals(owner) ? { state: 'taken' } : { state: 'held', owner: holder ?? Buffer.alloc(0) };
  }

  /** A lease taken in this process, while the primary did not answer, covers what is written in this process. */
  async settle(key: string, owner: Buffer, entry: StoreEntry): Promise<boolean> {
    this.#assertOpen();
    const leaseKey = leaseKeyOf(key);
    const leaseHere = await this.#heldHere(leaseKey);
    if (leaseHere) {
      if (!leaseHere.equals(owner)) return false;
      await this.set(entry.key, entry.value, entry.ttlMs);
      return this.compareAndDelete(leaseKey, owner);
    }
    this.#journal.forget(entry.key); // as in `set`
    const answer = await this.#write(() => this.#primary.settle(key, owner, entry));
    if (answer.answered) {
      await this.#forgetLocally(entry.key);
      return answer.value;
    }
    await this.#local.set(entry.key, entry.value, entry.ttlMs);
    const expiresAt = this.#now() + entry.ttlMs;
    this.#journal.add(entry.key, { kind: 'covered', expiresAt, owner: Buffer.from(owner) });
    this.#journal.addDeletion(leaseKey, owner);
    return true;
  }

  async compareAndDelete(key: string, expected: Buffer): Promise<boolean> {
    this.#assertOpen();
    const pending = this.#journal.get(key);
    const deletedHere = await this.#local.compareAndDelete(key, expected);
    if (deletedHere) this.#journal.forgetWrite(key);
    const answer = await this.#write(() => this.#primary.compareAndDelete(key, expected));
    if (answer.answered) return answer.value || deletedHere;
    const neverSent = deletedHere && pending?.kind === 'added' && !pending.asked;
    if (!neverSent) this.#journal.addDeletion(key, expected);
    return deletedHere;
  }

  /**
   * Counts in the primary only, and rejects when that gives no answer (the call may have been counted all the same): what a
   * process counts alone is not the fleet's count, and whoever counts has to decide what to do without it.
   */
  async increment(key: string, by: number, ttlMs: number): Promise<Count> {
    this.#assertOpen();
    const answer = await this.#write(() => this.#primary.increment(key, by, ttlMs));
    if (answer.answered) return answer.value;
    throw new StoreError('unreachable');
  }

  async waitForDelete(key: string, timeoutMs: number): Promise<void> {
    if (this.#closed) return;
    if (await this.#local.get(key)) return this.#local.waitForDelete(key, timeoutMs);
    if (this.#reads.isClosed) return this.#primary.waitForDelete(key, timeoutMs).catch(() => undefined);
    await sleep(Math.min(timeoutMs, 50)); // nobody to ask: look again soon
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#probeTimer);
    await Promise.all([this.#local.close(), this.#primary.close()]);
  }

  /**
   * When the primary gave no answer it may still have stored `value`. So it is read: our own bytes there mean that it did
   * (a lease has a random owner), other bytes that somebody else was first. When it cannot be read either, the local store
   * decides. If the lost write then turns out to be applied, the other processes see a lease held by this one, which is
   * the truth; releasing it deletes it on the primary too, now or when it is back, and at the latest it expires.
   */
  async #takeLease(key: string, value: Buffer, ttlMs: number, lost?: Answer<unknown>): Promise<boolean> {
    if (await this.#heldHere(key)) return false;
    const answer = lost?.answered === false ? lost : await this.#write(() => this.#primary.claim(key, value, ttlMs));
    if (answer.answered) {
      if (answer.value) this.#journal.forget(key);
      return answer.value;
    }
    const seen = await this.#readPrimary(key);
    if (seen) return seen.equals(value);
    const added = await this.#local.claim(key, value, ttlMs);
    if (added) this.#journal.add(key, { kind: 'added', expiresAt: this.#now() + ttlMs, asked: answer.asked });
    return added;
  }

  /** What was written here and not yet delivered; it is newer than what the primary holds. */
  async #heldHere(key: string): Promise<Buffer | undefined> {
    return this.#journal.get(key) && this.#local.get(key);
  }

  async #readPrimary(key: string): Promise<Buffer | undefined> {
    const answer = await this.#reads.ask(() => this.#primary.get(key));
    if (!answer.answered || !answer.value || this.#journal.isDeleted(key, answer.value)) return undefined;
    return answer.value;
  }

  async #write<T>(work: () => Promise<T>): Promise<Answer<T>> {
    const answer = await this.#writes.ask(work);
    if (!answer.answered && this.#probeTimer === undefined) this.#scheduleProbe();
    if (answer.answered && !this.#journal.isEmpty) this.#deliver();
    return answer;
  }

  async #forgetLocally(key: string): Promise<void> {
    const old = await this.#local.get(key);
    if (old) await this.#local.compareAndDelete(key, old);
  }

  /** In the background, one delivery at a time; what fails stays pending for the next. */
  #deliver(): void {
    this.#delivery ??= this.#journal
      .deliver(this.#primary, this.#local)
      .catch(() => undefined)
      .finally(() => {
        this.#delivery = undefined;
      });
  }

  #onOpen(trouble: StoreTrouble): void {
    if (this.degraded || this.#closed) return;
    this.#degradedSince = this.#now();
    // One that passes its probes and fails again and again is left alone for longer each time, up to half a minute.
    const relapsed = this.#degradedSince - this.#recoveredAt < 10 * this.#probeMs;
    this.#probeMs = relapsed ? Math.min(2 * this.#probeMs, 30 * this.#probeEveryMs) : this.#probeEveryMs;
    this.#scheduleProbe();
    this.#options.onDegraded?.(trouble);
  }

  #onClose(): void {
    if (this.#degradedSince === undefined || !this.#reads.isClosed || !this.#writes.isClosed) return;
    this.#recoveredAt = this.#now();
    const durationMs = this.#recoveredAt - this.#degradedSince;
    this.#degradedSince = undefined;
    this.#deliver();
    this.#options.onRecovered?.(durationMs);
  }

  /** Until the primary answers and has been told everything: after one lost answer too, since nobody may write for long. */
  #scheduleProbe(): void {
    clearTimeout(this.#probeTimer);
    this.#probeTimer = setTimeout(async () => {
      this.#probeTimer = undefined;
      if ((await this.#probe()) && !this.#journal.isEmpty) this.#deliver();
      await this.#delivery;
      if ((this.degraded || !this.#journal.isEmpty) && !this.#closed) this.#scheduleProbe();
    }, this.#probeMs).unref();
  }

  /** Really writes, because a full server still deletes. */
  async #probe(): Promise<boolean> {
    const read = () => Promise.all(probeKeys.map((key) => this.#primary.get(key)));
    const write = () => Promise.all(probeKeys.map((key) => this.#primary.set(key, probeValue, 1000)));
    const passed = await Promise.all([this.#reads.probe(read), this.#writes.probe(write)]).catch(() => [false]);
    return passed.every(Boolean);
  }

  #assertOpen(): void {
    if (this.#closed) throw new StoreError('closed');
  }
}
