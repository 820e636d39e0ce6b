import { LRUCache } from 'lru-cache';
import type { SealedStore } from '../cache/SealedStore.js';
import { GatewayError } from '../errors/errors.js';

export interface RateLimitOptions {
  readonly store: SealedStore;
  /** Operations per caller and minute over the whole fleet; 0 means no limit. */
  readonly perMinute: number;
  /** Milliseconds since the epoch; default `Date.now`. */
  readonly now?: () => number;
}

/** A caller's operations in one window. */
interface Count {
  readonly key: string;
  readonly window: number;
  /** Of the whole fleet, as last heard from the store, with all that this process has sent. */
  fleet: number;
  /** Of this process, not sent to the store yet. */
  unsent: number;
}

const windowMs = 60_000;
/** How often processes exchange their counts through the store. */
const exchangeEveryMs = 1000;
const maxCallers = 100_000;
/** Each process stops at the limit by itself: a fleet's count above that many limits is not believed. */
const maxProcesses = 1000;

/**
 * Bounds the operations of each caller, in windows of one clock minute. Nothing waits for the store: each process counts
 * by itself and exchanges counts with the others about once a second, so the fleet may let through what arrives within a
 * second beyond the limit. Without the store each process bounds by itself.
 */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #counts = new LRUCache<string, Count>({ max: maxCallers });
  /** Those with operations to send. */
  readonly #changed = new Set<Count>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: RateLimitOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      for (const count of this.#changed) void this.#exchange(count);
    }, exchangeEveryMs).unref();
  }

  /** Counts one operation. @throws GatewayError RATE_LIMITED (429); what is refused does not count */
  count(key: string): void {
    const { perMinute, now = Date.now } = this.#options;
    const nowMs = now();
    const window = Math.floor(nowMs / windowMs);
    const known = this.#counts.get(key);
    const count = known?.window === window ? known : { key, window, fleet: 0, unsent: 0 };
    if (count.fleet + count.unsent >= perMinute) {
      throw new GatewayError('RATE_LIMITED', `At most ${perMinute} operations per minute (RATE_LIMIT_PER_MINUTE)`, {
        retryAfterSeconds: Math.max(1, Math.ceil(((window + 1) * windowMs - nowMs) / 1000)),
        httpStatus: 429,
      });
    }
    count.unsent += 1;
    this.#changed.add(count);
    if (count === known) return;
    this.#counts.set(key, count);
    void this.#exchange(count); // the other processes may know this caller well: ask at once
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #exchange(count: Count): Promise<void> {
    const sending = count.unsent;
    this.#changed.delete(count);
    count.unsent = 0;
    count.fleet += sending;
    const name = ['rate', count.key, String(count.window)];
    const most = this.#options.perMinute * maxProcesses;
    try {
      const fleet = await this.#options.store.increment(name, sending, 2 * windowMs, most);
      count.fleet = Math.max(fleet, count.fleet);
    } catch {} // the store is away, or its count cannot be true: what this process counted still holds
  }
}
