import { LRUCache } from 'lru-cache';
import { type Caller, holderOf } from '../auth/caller.js';
import type { SealedStore } from '../cache/SealedStore.js';
import { GatewayError } from '../errors/errors.js';
import type { Holder } from './Ledger.js';
import type { WorkTime } from './WorkTime.js';

export interface RateLimitOptions {
  readonly store: SealedStore;
  /** Operations per caller and minute over the whole fleet; 0 means no limit. */
  readonly perMinute: number;
  /** What bounds the time of one caller's operations; asked where operations are limited. */
  readonly workTime: WorkTime;
  readonly now?: () => number;
}

/** What one caller did in the present window. */
interface Count {
  readonly window: number;
  /** Operations of the whole fleet, this process's included, as last heard from the store. */
  fleet: number;
  /** On their way to the store. */
  sent: number;
  /** Operations of this process that the store does not know of. */
  unsent: number;
}

const windowMs = 60_000;
/** How often counts are exchanged with the other processes, in milliseconds. */
const exchangeEveryMs = 1000;
const maxCallers = 100_000;
/** Operations that take less are bounded by their number, in milliseconds. */
const leastWorkMs = 1;
/** Each process stops at the limit by itself: a fleet's count above that many limits is not believed. */
const maxProcesses = 1000;

/**
 * Bounds the operations of each caller, in windows of one clock minute. Asking costs no waiting: each process counts by
 * itself, tells the store once a second, and learns there what the others have counted. So the fleet may let through what
 * arrives within about a second beyond the limit. Without the store each process bounds by itself. Each process also bounds
 * the time that one caller's operations take from those of the others.
 */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #now: () => number;
  readonly #counts = new LRUCache<string, Count>({ max: maxCallers });
  readonly #changed = new Map<string, Count>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RateLimitOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * Counts one operation. Callers without an identity of their own are told apart by the address they come from.
   *
   * @returns what to wait for before it begins, if anything
   * @throws GatewayError RATE_LIMITED (429); what is refused does not count
   */
  admit(caller: Caller, remoteAddress: string | undefined): Promise<void> | undefined {
    const { perMinute } = this.#options;
    if (perMinute === 0) return undefined;
    const holder = holderOf(caller);
    this.#options.workTime.admit(holder);
    const now = this.#now();
    const window = Math.floor(now / windowMs);
    const key = holder ?? `address ${remoteAddress ?? 'unknown'}`;
    const known = this.#counts.get(key);
    const count = known?.window === window ? known : { window, fleet: 0, sent: 0, unsent: 0 };
    if (count.fleet + count.sent + count.unsent >= perMinute) throw refusal(perMinute, (window + 1) * windowMs - now);
    count.unsent += 1;
    this.#changed.set(key, count);
    if (count !== known) {
      // A caller new to this process may be well known to the others: ask at once.
      this.#counts.set(key, count);
      void this.#exchange(key, count);
    }
    this.#timer ??= setInterval(() => this.#exchangeAll(), exchangeEveryMs).unref();
    return this.#options.workTime.nextTurn(holder);
  }

  /** Notes that an operation of `holder` has held up the event loop since `beganAt` (of `performance.now()`). */
  noteWork(holder: Holder, beganAt: number): void {
    const ms = performance.now() - beganAt;
    if (ms >= leastWorkMs) this.#options.workTime.spend(holder, ms);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #exchangeAll(): void {
    if (this.#changed.size === 0) this.stop(); // nobody called for a while: no timer is left
    for (const [key, count] of this.#changed) void this.#exchange(key, count);
  }

  async #exchange(key: string, count: Count): Promise<void> {
    if (count.sent > 0) return; // the one under way comes first
    this.#changed.delete(key);
    const sending = count.unsent;
    count.sent = sending;
    count.unsent = 0;
    try {
      const name = ['rate', key, String(count.window)];
      const most = this.#options.perMinute * maxProcesses;
      const { count: fleet } = await this.#options.store.increment(name, sending, 2 * windowMs, most);
      count.fleet = Math.max(fleet, count.fleet + sending);
    } catch {
      count.fleet += sending; // the store is away, or its count cannot be true: what this process counted still holds
    }
    count.sent = 0;
  }
}

function refusal(perMinute: number, remainingMs: number): GatewayError {
  return new GatewayError('RATE_LIMITED', `At most ${perMinute} operations per minute (RATE_LIMIT_PER_MINUTE)`, {
    retryAfterSeconds: Math.max(1, Math.ceil(remainingMs / 1000)),
    httpStatus: 429,
  });
}
