import { type Answer, Circuit, failuresToOpen } from './Circuit.js';
import { Delivery } from './Delivery.js';
import { leaseKeyOf, type Store, type StoreEntry, type Turn } from './Store.js';
import { StoreError, type StoreTrouble } from './StoreError.js';
import { timeLimit } from './timeLimit.js';
import { type PendingWrite, WriteJournal } from './WriteJournal.js';

export interface FallbackStoreOptions {
  /** Longest wait for the primary per operation. Default 250 ms. */
  readonly limitMs?: number;
  /** Pause between two probes of a primary that failed. Default 1000 ms. */
  readonly probeEveryMs?: number;
  /** The primary stopped answering; once per episode. */
  readonly onDegraded?: (trouble: StoreTrouble, detail?: string) => void;
  /** The primary answers reads and writes again; once per episode. `count` is how many operations it missed. */
  readonly onRecovered?: (durationMs: number, count: number) => void;
}

/** How long {@link FallbackStore.close} waits for the last delivery, in milliseconds. */
const lastDeliveryMs = 1000;

const isAmong = (values: readonly Buffer[], value: Buffer) => values.some((each) => each.equals(value));

/** Several keys, because a cluster keeps them on several servers. */
const probeKeys = Array.from({ length: 8 }, (_, n) => `probe-${n}`);
const probeValue = Buffer.from('probe');

/**
 * Keeps the gateway answering when the shared store does not. What the primary does not do in time, this process does alone;
 * a lease then excludes only other requests of this process. No operation rejects, except {@link increment}, {@link claim}
 * and {@link list}, which only the primary can do, and every operation after {@link close}.
 *
 * Reads and writes have separate circuits, because a store that is full or a read-only replica can still be read. A
 * background probe closes an open circuit. The primary then gets the writes made meanwhile ({@link WriteJournal}).
 */
export class FallbackStore implements Store {
  readonly kind: Store['kind'];
  /** Delivers what this process wrote while the primary did not answer. */
  readonly delivery: Delivery;
  readonly #journal = new WriteJournal();
  readonly #reads: Circuit;
  readonly #writes: Circuit;
  readonly #probeEveryMs: number;
  #degradedSince: number | undefined;
  /** Operations that the primary did not do in this episode. */
  #missed = 0;
  #recoveredAt = Number.NEGATIVE_INFINITY;
  #probeMs: number;
  #probeTimer: NodeJS.Timeout | undefined;
  #closed = false;
  #unsettled = false;

  constructor(
    private readonly primary: Store,
    private readonly options: FallbackStoreOptions = {},
  ) {
    this.kind = primary.kind;
    this.delivery = new Delivery(this.#journal, primary);
    this.#probeEveryMs = options.probeEveryMs ?? 1000;
    this.#probeMs = this.#probeEveryMs;
    const newCircuit = () => new Circuit(options.limitMs ?? 250, this.#onOpen, this.#onClose);
    this.#reads = newCircuit();
    this.#writes = newCircuit();
  }

  /** Whether some operations are done in this process only. */
  get degraded(): boolean {
    return this.#degradedSince !== undefined;
  }

  /** Probes the primary, so that a dead one is known at start and not found out by the first request. */
  async start(): Promise<void> {
    for (let tries = 0; tries < failuresToOpen && !this.degraded && !(await this.#probe()); tries++);
  }

  async get(key: string): Promise<Buffer | undefined> {
    return this.#pending(key) ?? (await this.#readPrimary(key)) ?? this.#pending(key);
  }

  async set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    const write: PendingWrite = { kind: 'set', value, expiresAt: performance.now() + ttlMs };
    this.#journal.supersede(key, write);
    const answer = await this.#write(() => this.primary.set(key, value, ttlMs));
    if (answer.answered) this.#journal.forgetWrite(key);
    else this.#journal.add(key, write);
  }

  async claim(key: string, value: Buffer, ttlMs: number): Promise<boolean> {
    const { claimed, asked } = await this.#tryClaim(key, value, ttlMs);
    if (claimed !== undefined) return claimed;
    if (asked) this.#journal.addDeletion(key, value);
    throw new StoreError('unreachable');
  }

  /** In one operation while the primary answers and nothing is pending; otherwise step by step. */
  async acquire(key: string, owner: Buffer, ttlMs: number, refused?: Buffer): Promise<Turn> {
    const leaseKey = leaseKeyOf(key);
    let answer: Answer<Turn> | undefined;
    if (!this.#pending(key) && !this.#pending(leaseKey)) {
      const deletions = this.#journal.deletions(key);
      answer = await this.#write(() => this.primary.acquire(key, owner, ttlMs, refused));
      const turn = answer.answered ? answer.value : undefined;
      if (turn?.state === 'taken') this.#journal.forget(leaseKey);
      if (turn && !(turn.state === 'found' && isAmong(deletions, turn.entry))) return turn;
    }
    const entry = await this.get(key);
    if (entry && !refused?.equals(entry)) return { state: 'found', entry };
    const { claimed, asked } = await this.#tryClaim(leaseKey, owner, ttlMs, answer);
    if (claimed) {
      this.#journal.forget(leaseKey);
      return { state: 'taken' };
    }
    if (claimed === undefined && !this.#pending(leaseKey)) {
      // The primary may hold this lease after all: releasing it here deletes it there, at once or when the primary is back.
      this.#journal.add(leaseKey, {
        kind: 'added',
        value: owner,
        expiresAt: performance.now() + ttlMs,
        asked,
      });
      return { state: 'taken' };
    }
    const holder = await this.get(leaseKey);
    return holder?.equals(owner) ? { state: 'taken' } : { state: 'held', owner: holder ?? Buffer.alloc(0) };
  }

  /** True also while the primary does not answer. Whether the lease was lost then turns out when its entry is delivered. */
  async renew(key: string, owner: Buffer, ttlMs: number): Promise<boolean> {
    const leaseKey = leaseKeyOf(key);
    const here = this.#journal.get(leaseKey);
    if (here && !here.value.equals(owner)) return false;
    if (here) this.#journal.add(leaseKey, { ...here, expiresAt: performance.now() + ttlMs });
    const answer = await this.#write(() => this.primary.renew(key, owner, ttlMs)); // a delivery may have brought it our lease
    return here !== undefined || !answer.answered || answer.value;
  }

  /** A lease that this process took alone, while the primary did not answer, covers the writes of this process. */
  async settle(key: string, owner: Buffer, entry: StoreEntry): Promise<boolean> {
    const leaseKey = leaseKeyOf(key);
    const leaseHere = this.#pending(leaseKey);
    if (leaseHere) {
      if (!leaseHere.equals(owner)) return false;
      await this.set(entry.key, entry.value, entry.ttlMs);
      return this.compareAndDelete(leaseKey, owner);
    }
    const expiresAt = performance.now() + entry.ttlMs;
    const write: PendingWrite = { kind: 'covered', value: entry.value, expiresAt, owner: Buffer.from(owner) };
    this.#journal.supersede(entry.key, write);
    const answer = await this.#write(() => this.primary.settle(key, owner, entry));
    if (answer.answered) {
      this.#journal.forgetWrite(entry.key);
      return answer.value;
    }
    this.#journal.add(entry.key, write);
    this.#journal.addDeletion(leaseKey, owner);
    return true;
  }

  async compareAndDelete(key: string, expected: Buffer): Promise<boolean> {
    const pending = this.#journal.get(key);
    const deletedHere = pending?.value.equals(expected) ?? false;
    if (deletedHere) this.#journal.forgetWrite(key);
    const answer = await this.#write(() => this.primary.compareAndDelete(key, expected));
    if (answer.answered) return answer.value || deletedHere;
    const neverSent = deletedHere && pending?.kind === 'added' && !pending.asked;
    if (!neverSent) this.#journal.addDeletion(key, expected);
    return deletedHere;
  }

  /** Rejects when the primary does not answer, as only the primary has the fleet's count. It may have counted even so. */
  async increment(key: string, by: number, ttlMs: number): Promise<number> {
    const answer = await this.#write(() => this.primary.increment(key, by, ttlMs));
    if (answer.answered) return answer.value;
    throw new StoreError('unreachable');
  }

  /** Rejects when the primary does not answer. Has no time limit: a long search is no sign of a failing primary. */
  async list(prefix: string): Promise<readonly string[]> {
    return [...new Set([...this.#journal.keys(prefix), ...(await this.primary.list(prefix))])];
  }

  /** Whether, since the last call, a write may have reached the primary late: one it did not answer, or one in the journal. */
  takeUnsettled(): boolean {
    const isUnsettled = this.degraded || !this.#journal.isEmpty;
    const wasUnsettled = this.#unsettled || isUnsettled;
    this.#unsettled = isUnsettled;
    return wasUnsettled;
  }

  /** First delivers what is pending, if the primary answers. */
  async close(): Promise<void> {
    const deliver = async () => {
      if (this.degraded) await this.#probe();
      if (!this.degraded) await this.delivery.complete();
    };
    const isPending = !this.#closed && !this.#journal.isEmpty;
    if (isPending) await timeLimit(deliver, lastDeliveryMs).catch(() => undefined);
    this.#closed = true;
    clearTimeout(this.#probeTimer);
    this.#journal.close();
    await this.primary.close();
  }

  /**
   * `claimed` is undefined when the outcome is unknown. After a lost answer the primary may hold the value all the same, so the
   * key is read: our own bytes (they are random) mean that the claim succeeded, others that another process was first.
   */
  async #tryClaim(key: string, value: Buffer, ttlMs: number, lost?: Answer<unknown>) {
    if (this.#pending(key)) return { claimed: false, asked: false };
    const answer = lost?.answered === false ? lost : await this.#write(() => this.primary.claim(key, value, ttlMs));
    if (answer.answered) return { claimed: answer.value, asked: true };
    return { claimed: (await this.#readPrimary(key))?.equals(value), asked: answer.asked };
  }

  /** What was written here and not yet delivered. */
  #pending(key: string): Buffer | undefined {
    return this.#journal.get(key)?.value;
  }

  async #readPrimary(key: string): Promise<Buffer | undefined> {
    if (this.#closed) throw new StoreError('closed');
    const deletions = this.#journal.deletions(key);
    const answer = await this.#reads.ask(() => this.primary.get(key));
    if (!answer.answered) this.#miss();
    const value = answer.answered ? answer.value : undefined;
    return value && isAmong(deletions, value) ? undefined : value;
  }

  async #write<T>(work: () => Promise<T>): Promise<Answer<T>> {
    if (this.#closed) throw new StoreError('closed');
    const answer = await this.#writes.ask(work);
    if (!answer.answered) this.#miss();
    if (!answer.answered && this.#probeTimer === undefined) this.#scheduleProbe();
    if (answer.answered && !this.#journal.isEmpty) this.delivery.begin();
    return answer;
  }

  #miss(): void {
    this.#missed += 1;
    this.#unsettled = true;
  }

  readonly #onOpen = (trouble: StoreTrouble, detail?: string): void => {
    if (this.degraded || this.#closed) return;
    this.#degradedSince = performance.now();
    // Backoff: each time the primary fails soon after a recovery, the pause between probes doubles, up to 30 times the first.
    const relapsed = this.#degradedSince - this.#recoveredAt < 10 * this.#probeMs;
    this.#probeMs = relapsed ? Math.min(2 * this.#probeMs, 30 * this.#probeEveryMs) : this.#probeEveryMs;
    this.#scheduleProbe();
    this.options.onDegraded?.(trouble, detail);
  };

  readonly #onClose = (): void => {
    if (this.#degradedSince === undefined || !this.#reads.isClosed || !this.#writes.isClosed) return;
    this.#recoveredAt = performance.now();
    const durationMs = this.#recoveredAt - this.#degradedSince;
    const missed = this.#missed;
    this.#degradedSince = undefined;
    this.#missed = 0;
    this.delivery.begin();
    this.options.onRecovered?.(durationMs, missed);
  };

  /** Probes until the primary answers and has every write; also after one lost answer, since no write may follow soon. */
  #scheduleProbe(): void {
    clearTimeout(this.#probeTimer);
    this.#probeTimer = setTimeout(async () => {
      this.#probeTimer = undefined;
      if ((await this.#probe()) && !this.#journal.isEmpty) this.delivery.begin();
      await this.delivery.underWay;
      if ((this.degraded || !this.#journal.isEmpty) && !this.#closed) this.#scheduleProbe();
    }, this.#probeMs).unref();
  }

  /** Probes with real writes, because a full server still accepts deletions. */
  async #probe(): Promise<boolean> {
    const read = () => Promise.all(probeKeys.map((key) => this.primary.get(key)));
    const write = () => Promise.all(probeKeys.map((key) => this.primary.set(key, probeValue, 1000)));
    const passed = await Promise.all([this.#reads.probe(read), this.#writes.probe(write)]).catch(() => [false]);
    return passed.every(Boolean);
  }
}
