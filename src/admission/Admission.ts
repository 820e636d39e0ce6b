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

/** A caller's root fields in one window. `fleet`: the store's last count plus what was sent since; `unsent`: the rest. */
interface Count {
  readonly key: string;
  readonly window: number;
  fleet: number;
  unsent: number;
}

const windowMs = 60_000;
/** How often processes exchange their counts through the store. */
const exchangeEveryMs = 1000;
/** Up to this share of its limit a caller's count is not sent to the store: most callers never ask for more. */
const keptShare = 0.01;
const maxCallers = 100_000;
/** A fleet count above so many times the limit must be wrong: each process stops at the limit by itself. */
const maxProcesses = 1000;
/** Shorter work, in milliseconds, is not charged: the limit on root fields bounds it. */
const leastWorkMs = 1;

/**
 * Decides when an operation may begin: bounds each caller's share of the event loop, and its root fields per clock minute.
 * No operation waits for the store: each process counts locally and exchanges counts with the others about once a second. So
 * the fleet may exceed a limit by what arrives within a second, and by a hundredth of the limit per process. Without the
 * store each process applies the limit alone.
 */
export class Admission {
  readonly #refusals = new RefusalPace();
  readonly #counts = new BoundedCache<Count>({ max: maxCallers });
  /** The count used last, looked up first: soon after an operation is counted, its answer tells what is left. */
  #latest: Count | undefined;
  /** Counts with root fields to send. */
  readonly #changed = new Set<Count>();
  readonly #timer = setInterval(() => this.#exchangeAll(), exchangeEveryMs).unref();

  constructor(private readonly options: AdmissionOptions) {}

  /**
   * Counts one root field; callers without an identity are counted by address. Returns what to wait for, if anything.
   * @throws GatewayError RATE_LIMITED (429); a refused field does not count
   */
  admit(caller: Caller, remoteAddress: string | undefined): Promise<void> | undefined {
    const { workTime, perMinute } = this.options;
    const turn = workTime.admit(holderOf(caller));
    if (perMinute !== 0) this.#count(keyOf(caller, remoteAddress));
    return turn;
  }

  /**
   * Counts the root fields of an operation beyond its first one.
   * @throws GatewayError RATE_LIMITED (429); then none of them counts
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

  /** Notes that an operation of `holder` has held up the event loop for `ms` milliseconds. */
  noteWork(holder: Holder, ms: number): void {
    if (ms >= leastWorkMs) this.options.workTime.spend(holder, ms);
  }

  /** Returns what to wait for before the next event of a stream of `holder` is executed, if anything. */
  turnOf(holder: Holder): Promise<void> | undefined {
    return this.options.workTime.turnOf(holder);
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
    if (count.fleet === 0) void this.#exchange(count); // other processes may already have counted this caller
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
      const { count: fleet } = await store.increment(name, sending, 2 * windowMs, perMinute * maxProcesses);
      count.fleet = Math.max(fleet, count.fleet);
    } catch {} // the store is unavailable, or its count is impossible: the local count still holds
  }
}

/** Callers without an identity are told apart by their address. */
function keyOf(caller: Caller, remoteAddress: string | undefined): string {
  return holderOf(caller) ?? `address ${remoteAddress ?? 'unknown'}`;
}
