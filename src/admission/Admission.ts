import { anyone, type Caller, holderOf } from '../auth/caller.js';
import type { Identity } from '../auth/identify.js';
import type { SealedStore } from '../cache/SealedStore.js';
import { BoundedCache } from '../process/BoundedCache.js';
import { type Holder, rateLimited } from './Ledger.js';
import { RefusalPace } from './RefusalPace.js';
import type { WorkTime } from './WorkTime.js';

export interface AdmissionOptions {
  readonly workTime: WorkTime;
  readonly store: SealedStore;
  /** Root fields of operations per caller and minute over the whole fleet; 0 means no limit. */
  readonly perMinute: number;
  /** Milliseconds since the epoch; default `Date.now`. */
  readonly now?: () => number;
}

/** A caller's root fields in one window: `fleet` as last heard from the store with all that was sent, `unsent` not sent yet. */
interface Count {
  readonly key: string;
  readonly window: number;
  fleet: number;
  unsent: number;
}

const windowMs = 60_000;
/** How often processes exchange their counts through the store. */
const exchangeEveryMs = 1000;
/** The share of a caller's limit up to which a process keeps its count to itself: most callers never ask for more. */
const keptShare = 0.01;
const maxCallers = 100_000;
/** Each process stops at the limit by itself: a fleet's count above that many limits is not believed. */
const maxProcesses = 1000;
/** Work that takes less is bounded by the number of operations, in milliseconds. */
const leastWorkMs = 1;

/**
 * Decides when an operation may begin: bounds each caller's part of the event loop, and the root fields it asks for in windows
 * of one clock minute. Nothing waits for the store: each process counts by itself and exchanges counts with the others about once
 * a second, so the fleet may let through beyond the limit what arrives within a second, and a hundredth of the limit for each
 * process. Without the store each process bounds by itself.
 */
export class Admission {
  readonly #refusals = new RefusalPace();
  readonly #counts = new BoundedCache<Count>({ max: maxCallers });
  /** Looked at first: an operation is counted, and soon its answer tells what is left. */
  #latest: Count | undefined;
  /** Those with root fields to send. */
  readonly #changed = new Set<Count>();
  readonly #timer = setInterval(() => this.#exchangeAll(), exchangeEveryMs).unref();

  constructor(private readonly options: AdmissionOptions) {}

  /**
   * Counts one root field, for callers without an identity by their address. Returns what to wait for, if anything.
   * @throws GatewayError RATE_LIMITED (429); what is refused does not count
   */
  admit(caller: Caller, remoteAddress: string | undefined): Promise<void> | undefined {
    if (this.options.perMinute === 0) return undefined;
    const holder = holderOf(caller);
    const turn = this.options.workTime.admit(holder);
    this.#count(keyOf(caller, remoteAddress));
    return turn;
  }

  /**
   * Counts what an operation asks for beyond its first root field. @throws GatewayError RATE_LIMITED (429); then none of it
   * counts
   */
  countMore({ caller, remoteAddress }: Pick<Identity, 'caller' | 'remoteAddress'>, rootFields: number): void {
    if (this.options.perMinute !== 0) this.#count(keyOf(caller, remoteAddress), rootFields);
  }

  /** What is left of the caller's root fields in this minute; undefined where there is no limit. */
  limitOf({ caller, remoteAddress }: Pick<Identity, 'caller' | 'remoteAddress'>) {
    const { perMinute, now = Date.now } = this.options;
    if (perMinute === 0) return undefined;
    const nowMs = now();
    const window = Math.floor(nowMs / windowMs);
    const count = this.#countOf(keyOf(caller, remoteAddress));
    const used = count?.window === window ? count.fleet + count.unsent : 0;
    const resetSeconds = Math.ceil(((window + 1) * windowMs - nowMs) / 1000);
    return { perMinute, left: Math.max(0, perMinute - used), resetSeconds };
  }

  /** Milliseconds until a refusal may be answered; Infinity when too many of the same caller, or address, wait already. */
  waitOfRefusal({ caller, remoteAddress }: Partial<Identity>): number {
    return this.#refusals.take(keyOf(caller ?? anyone, remoteAddress));
  }

  /** Notes that an operation of `holder` has held up the event loop since `beganAt` (of `performance.now()`). */
  noteWork(holder: Holder, beganAt: number): void {
    const ms = performance.now() - beganAt;
    if (ms >= leastWorkMs) this.options.workTime.spend(holder, ms);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #count(key: string, rootFields = 1): void {
    const { perMinute, now = Date.now } = this.options;
    const nowMs = now();
    const window = Math.floor(nowMs / windowMs);
    const known = this.#countOf(key);
    const count = known?.window === window ? known : { key, window, fleet: 0, unsent: 0 };
    if (count.fleet + count.unsent + rootFields > perMinute) {
      const retryAfterSeconds = Math.ceil(((window + 1) * windowMs - nowMs) / 1000);
      throw rateLimited(`At most ${perMinute} root fields per minute (RATE_LIMIT_PER_MINUTE)`, { retryAfterSeconds });
    }
    count.unsent += rootFields;
    this.#latest = count;
    if (count !== known) this.#counts.set(key, count);
    if (count.fleet + count.unsent <= perMinute * keptShare) return;
    this.#changed.add(count);
    if (count.fleet === 0) void this.#exchange(count); // the other processes may know this caller well
  }

  #exchangeAll(): void {
    for (const count of this.#changed) void this.#exchange(count);
  }

  #countOf(key: string): Count | undefined {
    return this.#latest?.key === key ? this.#latest : this.#counts.get(key);
  }

  async #exchange(count: Count): Promise<void> {
    this.#changed.delete(count);
    const sending = count.unsent;
    count.unsent = 0;
    count.fleet += sending;
    const { store, perMinute } = this.options;
    const name = ['rate', count.key, String(count.window)];
    try {
      const fleet = await store.increment(name, sending, 2 * windowMs, perMinute * maxProcesses);
      count.fleet = Math.max(fleet, count.fleet);
    } catch {} // the store is away, or its count cannot be true: what this process counted still holds
  }
}

/** Callers without an identity are told apart by their address. */
function keyOf(caller: Caller, remoteAddress: string | undefined): string {
  return holderOf(caller) ?? `address ${remoteAddress ?? 'unknown'}`;
}
