import { type Caller, holderOf } from '../auth/caller.js';
import type { Holder } from './Ledger.js';
import { RateLimit, type RateLimitOptions } from './RateLimit.js';
import type { WorkTime } from './WorkTime.js';

export interface AdmissionOptions extends RateLimitOptions {
  readonly workTime: WorkTime;
}

/** Work that takes less is bounded by the number of operations, in milliseconds. */
const leastWorkMs = 1;

/** Decides when an operation may begin: bounds each caller's operations, and the part of the event loop that they take. */
export class Admission {
  readonly #rateLimit: RateLimit | undefined;
  readonly #workTime: WorkTime;

  constructor({ workTime, ...options }: AdmissionOptions) {
    this.#workTime = workTime;
    this.#rateLimit = options.perMinute === 0 ? undefined : new RateLimit(options);
  }

  /**
   * Counts one operation, for callers without an identity by their address. Returns what to wait for before it begins, if
   * anything.
   *
   * @throws GatewayError RATE_LIMITED (429); what is refused does not count
   */
  admit(caller: Caller, remoteAddress: string | undefined): Promise<void> | undefined {
    if (this.#rateLimit === undefined) return undefined;
    const holder = holderOf(caller);
    const turn = this.#workTime.admit(holder);
    this.#rateLimit.count(holder ?? `address ${remoteAddress ?? 'unknown'}`);
    return turn;
  }

  /** Notes that an operation of `holder` has held up the event loop since `beganAt` (of `performance.now()`). */
  noteWork(holder: Holder, beganAt: number): void {
    const ms = performance.now() - beganAt;
    if (ms >= leastWorkMs) this.#workTime.spend(holder, ms);
  }

  stop(): void {
    this.#rateLimit?.stop();
  }
}
