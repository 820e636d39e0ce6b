import { LRUCache } from 'lru-cache';
import { GatewayError } from '../errors.js';
import type { Holder } from './Ledger.js';

export interface WorkTimeOptions {
  /** Milliseconds of a monotonic clock; default `performance.now`. */
  readonly now?: () => number;
}

/** The part of the event loop's time that one caller may take for as long as others ask as well. */
const share = 0.25;
/** What a caller may take beyond its share in one go, in milliseconds. */
const burstMs = 500;
/** Callers seen within this time are asking now, in milliseconds. */
const presentMs = 1000;
const maxCallers = 10_000;

interface Account {
  /** Work beyond the share, in milliseconds, as of `at`. */
  excessMs: number;
  at: number;
}

/**
 * Keeps one caller's expensive operations from delaying everybody else's: reading, checking and answering an operation
 * holds up the event loop, and nothing else can run meanwhile. A caller who is alone is not bounded.
 */
export class WorkTime {
  readonly #now: () => number;
  readonly #accounts = new LRUCache<string, Account>({ max: maxCallers });
  #latest: Holder;
  #othersSeenAt = Number.NEGATIVE_INFINITY;

  constructor({ now = () => performance.now() }: WorkTimeOptions = {}) {
    this.#now = now;
  }

  /** @throws GatewayError RATE_LIMITED (429) for a caller who has taken more than its share while others ask as well */
  admit(holder: Holder): void {
    if (holder !== this.#latest) {
      this.#othersSeenAt = this.#now();
      this.#latest = holder;
    }
    const account = holder === undefined ? undefined : this.#accounts.get(holder);
    if (account === undefined) return;
    const now = this.#now();
    const excessMs = excessAt(account, now);
    if (excessMs <= burstMs || now - this.#othersSeenAt > presentMs) return;
    const message = 'Your operations take too much of the time that all callers share';
    const retryAfterSeconds = Math.max(1, Math.ceil((excessMs - burstMs) / (share * 1000)));
    throw new GatewayError('RATE_LIMITED', message, { retryAfterSeconds, httpStatus: 429 });
  }

  /** Notes that an operation of `holder` held up the event loop for `ms` milliseconds. */
  spend(holder: Holder, ms: number): void {
    if (holder === undefined) return;
    const now = this.#now();
    const account = this.#accounts.get(holder);
    if (account === undefined) {
      this.#accounts.set(holder, { excessMs: ms, at: now });
      return;
    }
    account.excessMs = excessAt(account, now) + ms;
    account.at = now;
  }
}

function excessAt({ excessMs, at }: Account, now: number): number {
  return Math.max(0, excessMs - share * (now - at));
}
