import { performance } from 'node:perf_hooks';
import { LRUCache } from 'lru-cache';
import { GatewayError } from '../errors/errors.js';
import type { Holder } from './Ledger.js';

export interface WorkTimeOptions {
  /** Milliseconds of a monotonic clock; default `performance.now`. */
  readonly now?: () => number;
  /** Recent utilization of the event loop, from 0 to 1; default as Node.js measures it. */
  readonly utilization?: () => number;
}

/** The part of the event loop's time that one caller may take while others ask as well. */
const share = 0.1;
/** What a caller may take beyond its share at once. */
const burstMs = 100;
/** What a caller may take of one turn of the event loop before its next operation waits for another turn. */
const turnMs = 10;
/** How long after a caller's last operation others still make room for it. */
const presentMs = 1000;
/** Below this the event loop has time for everybody. */
const busyUtilization = 0.5;
const maxCallers = 10_000;

/**
 * Keeps one caller's expensive operations from delaying everybody else's: nothing else runs while an operation is read,
 * checked and answered. A caller who is alone is not bounded, and nobody is refused while the process is not busy.
 */
export class WorkTime {
  readonly #now: () => number;
  readonly #utilization: () => number;
  /** Work of each caller beyond its share, as of `at`. */
  readonly #excess = new LRUCache<string, { readonly ms: number; readonly at: number }>({ max: maxCallers });
  /** Work of each caller in this turn of the event loop, in milliseconds. */
  readonly #thisTurn = new Map<string, number>();
  /** Of the last operation; null before the first. */
  #latest: Holder | null = null;
  #othersSeenAt = Number.NEGATIVE_INFINITY;

  constructor({ now = () => performance.now(), utilization = recentUtilization() }: WorkTimeOptions = {}) {
    this.#now = now;
    this.#utilization = utilization;
  }

  /**
   * Returns what to wait for before an operation of `holder` begins, if anything.
   *
   * @throws GatewayError RATE_LIMITED (429) for a caller who has taken more than its share while others ask as well
   */
  admit(holder: Holder): Promise<void> | undefined {
    if (holder !== this.#latest) {
      if (this.#latest !== null) this.#othersSeenAt = this.#now();
      this.#latest = holder;
    }
    if (holder === undefined) return undefined;
    const excessMs = this.#excessOf(holder);
    if (excessMs > burstMs && this.isContended) {
      throw new GatewayError('RATE_LIMITED', 'Your operations take too much of the time that all callers share', {
        retryAfterSeconds: Math.max(1, Math.ceil((excessMs - burstMs) / (share * 1000))),
        httpStatus: 429,
      });
    }
    return this.#hadItsTurn(holder) ? this.#nextTurn(holder) : undefined;
  }

  /** Whether several callers ask and the event loop has little time left for them. */
  get isContended(): boolean {
    return this.#hasOthers && this.#utilization() >= busyUtilization;
  }

  /** Notes that an operation of `holder` held up the event loop for `ms` milliseconds. */
  spend(holder: Holder, ms: number): void {
    if (holder === undefined) return;
    this.#excess.set(holder, { ms: this.#excessOf(holder) + ms, at: this.#now() });
    if (this.#thisTurn.size === 0) setImmediate(() => this.#thisTurn.clear());
    this.#thisTurn.set(holder, (this.#thisTurn.get(holder) ?? 0) + ms);
  }

  #excessOf(holder: string): number {
    const excess = this.#excess.get(holder);
    return excess === undefined ? 0 : Math.max(0, excess.ms - share * (this.#now() - excess.at));
  }

  #hadItsTurn(holder: string): boolean {
    return (this.#thisTurn.get(holder) ?? 0) >= turnMs && this.#hasOthers;
  }

  async #nextTurn(holder: string): Promise<void> {
    while (this.#hadItsTurn(holder)) await new Promise((resolve) => setImmediate(resolve));
  }

  get #hasOthers(): boolean {
    return this.#now() - this.#othersSeenAt <= presentMs;
  }
}

/** The event loop's utilization over about the last half second. */
function recentUtilization(): () => number {
  const spanMs = 500;
  let before = performance.eventLoopUtilization();
  let latest = before;
  let latestAt = performance.now();
  return () => {
    if (performance.now() - latestAt > spanMs) {
      before = latest;
      latest = performance.eventLoopUtilization();
      latestAt = performance.now();
    }
    return performance.eventLoopUtilization(before).utilization;
  };
}
