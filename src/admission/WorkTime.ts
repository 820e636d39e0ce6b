import { performance } from 'node:perf_hooks';
import { BoundedCache } from '../process/BoundedCache.js';
import { type Holder, rateLimited } from './Ledger.js';

/** How busy the process is. */
export interface Load {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Recent utilization of the event loop, from 0 to 1. */
  readonly utilization: () => number;
  /** Share of the event loop's active time in which the process had the CPU, from 0 to 1. */
  readonly ranShare: () => number;
}

/** The share of the event loop's time that one caller may take while others ask as well. */
const share = 0.1;
/** What a caller may take beyond its share at once. */
const burstMs = 100;
/** What a caller may take of one turn of the event loop before its next operation waits for another turn. */
const turnMs = 10;
/** How long after a caller's last operation others still make room for it. */
const presentMs = 1000;
/** Below this utilization no caller is bounded. */
const busyUtilization = 0.5;
const maxCallers = 10_000;

/**
 * Keeps one caller's expensive operations from delaying the others': nothing else runs while an operation is read,
 * checked and answered. A caller who is alone is not bounded, and no caller is refused while the process is not busy.
 */
export class WorkTime {
  /** Work of each caller beyond its share, as of `at`. */
  readonly #excess = new BoundedCache<{ readonly ms: number; readonly at: number }>({ max: maxCallers });
  /** Work of each caller in this turn of the event loop, in milliseconds. */
  readonly #thisTurn = new Map<string, number>();
  /** The holder of the last operation; null before the first. */
  #latest: Holder | null = null;
  #othersSeenAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly load: Load = recentLoad()) {}

  /**
   * Returns what to wait for before an operation of `holder` begins, if anything.
   * @throws GatewayError RATE_LIMITED (429) for a caller who has taken more than its share while others ask as well
   */
  admit(holder: Holder): Promise<void> | undefined {
    if (holder !== this.#latest && this.#latest !== null) this.#othersSeenAt = this.load.now();
    this.#latest = holder;
    if (holder === undefined) return undefined;
    const excessMs = this.#excessOf(holder);
    if (excessMs > burstMs && this.#hasOthers && this.load.utilization() >= busyUtilization) {
      const retryAfterSeconds = Math.ceil((excessMs - burstMs) / (share * 1000));
      throw rateLimited('Your operations take too much of the time that all callers share', { retryAfterSeconds });
    }
    return this.turnOf(holder);
  }

  /** Returns what to wait for before work of `holder` that is never refused begins, if anything. */
  turnOf(holder: Holder): Promise<void> | undefined {
    return holder !== undefined && this.#hadItsTurn(holder) ? this.#nextTurn(holder) : undefined;
  }

  /** Notes that `holder` held up the event loop for `ms` milliseconds, and charges those in which it had the CPU. */
  spend(holder: Holder, ms: number): void {
    if (holder === undefined) return;
    this.#excess.set(holder, { ms: this.#excessOf(holder) + ms * this.load.ranShare(), at: this.load.now() });
    if (this.#thisTurn.size === 0) setImmediate(() => this.#thisTurn.clear());
    this.#thisTurn.set(holder, (this.#thisTurn.get(holder) ?? 0) + ms);
  }

  #excessOf(holder: string): number {
    const { ms, at } = this.#excess.get(holder) ?? { ms: 0, at: 0 };
    return Math.max(0, ms - share * (this.load.now() - at));
  }

  async #nextTurn(holder: string): Promise<void> {
    while (this.#hadItsTurn(holder)) await new Promise((resolve) => setImmediate(resolve));
  }

  #hadItsTurn(holder: string): boolean {
    return (this.#thisTurn.get(holder) ?? 0) >= turnMs && this.#hasOthers;
  }

  get #hasOthers(): boolean {
    return this.load.now() - this.#othersSeenAt <= presentMs;
  }
}

/** The load of this process over about the last half second, as Node.js and the system measure it. */
export function recentLoad(): Load {
  const spanMs = 500;
  const sample = () => ({ at: performance.now(), loop: performance.eventLoopUtilization(), cpu: process.cpuUsage() });
  let latest = sample();
  let load = { since: latest.loop, ranShare: 1 };
  const recent = () => {
    if (performance.now() - latest.at <= spanMs) return load;
    const { user, system } = process.cpuUsage(latest.cpu); // in microseconds
    const { active } = performance.eventLoopUtilization(latest.loop); // in milliseconds
    load = { since: latest.loop, ranShare: Math.min(1, (user + system) / 1000 / active) };
    latest = sample();
    return load;
  };
  return {
    now: () => performance.now(),
    utilization: () => performance.eventLoopUtilization(recent().since).utilization,
    ranShare: () => recent().ranShare,
  };
}
