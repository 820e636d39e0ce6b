import { performance } from 'node:perf_hooks';
import { LRUCache } from 'lru-cache';
import { GatewayError } from '../errors/errors.js';
import type { Holder } from './Ledger.js';

export interface WorkTimeOptions {
  /** Milliseconds of a monotonic clock; default `performance.now`. */
  readonly now?: () => number;
  /** How busy the event loop has been of late, from 0 to 1; by default as Node.js measures it. */
  readonly utilization?: () => number;
}

/** The part of the event loop's time that one caller may take for as long as others ask as well. */
const share = 0.1;
/** What a caller may take beyond its share in one go, in milliseconds. */
const burstMs = 100;
/** What a caller may take of one turn of the event loop before its next operation waits for another turn, in milliseconds. */
const turnMs = 10;
/** Callers seen within this time are asking now, in milliseconds. */
const presentMs = 1000;
/** Below this the event loop has time for everybody. */
const busyUtilization = 0.5;
const maxCallers = 10_000;

interface Account {
  /** Work beyond the share, in milliseconds, as of `at`. */
  excessMs: number;
  at: number;
  /** Work done in the turn of this number, in milliseconds. */
  turn: number;
  workInTurnMs: number;
}

/**
 * Keeps one caller's expensive operations from delaying everybody else's: reading, checking and answering an operation
 * holds up the event loop, and nothing else can run meanwhile. A caller is not bounded when alone, or while the process is
 * not busy.
 */
export class WorkTime {
  readonly #now: () => number;
  readonly #accounts = new LRUCache<string, Account>({ max: maxCallers });
  readonly #utilization: () => number;
  /** Turns of the event loop, counted while there is work. */
  #turn = 0;
  #isTurnEnding = false;
  #latest: { readonly holder: Holder } | undefined;
  #othersSeenAt = Number.NEGATIVE_INFINITY;

  constructor({ now = () => performance.now(), utilization = recentUtilization() }: WorkTimeOptions = {}) {
    this.#now = now;
    this.#utilization = utilization;
  }

  /** @throws GatewayError RATE_LIMITED (429) for a caller who has taken more than its share while others ask as well */
  admit(holder: Holder): void {
    if (holder !== this.#latest?.holder) {
      if (this.#latest !== undefined) this.#othersSeenAt = this.#now();
      this.#latest = { holder };
    }
    const account = holder === undefined ? undefined : this.#accounts.get(holder);
    if (account === undefined) return;
    const excessMs = excessAt(account, this.#now());
    if (excessMs <= burstMs || !this.isContended) return;
    const message = 'Your operations take too much of the time that all callers share';
    const retryAfterSeconds = Math.max(1, Math.ceil((excessMs - burstMs) / (share * 1000)));
    throw new GatewayError('RATE_LIMITED', message, { retryAfterSeconds, httpStatus: 429 });
  }

  /** Waits until `holder` may begin one more operation; undefined when that is now. */
  nextTurn(holder: Holder): Promise<void> | undefined {
    const account = holder === undefined ? undefined : this.#accounts.get(holder);
    return account !== undefined && this.#hadItsTurn(account) ? this.#waitForTurn(account) : undefined;
  }

  async #waitForTurn(account: Account): Promise<void> {
    while (this.#hadItsTurn(account)) await new Promise((resolve) => setImmediate(resolve));
  }

  #hadItsTurn({ turn, workInTurnMs }: Account): boolean {
    return turn === this.#turn && workInTurnMs >= turnMs && this.#hasOthers;
  }

  get #hasOthers(): boolean {
    return this.#now() - this.#othersSeenAt <= presentMs;
  }

  /** Whether several callers ask and the event loop has little time left for them. */
  get isContended(): boolean {
    return this.#hasOthers && this.#utilization() >= busyUtilization;
  }

  /** Notes that an operation of `holder` held up the event loop for `ms` milliseconds. */
  spend(holder: Holder, ms: number): void {
    if (holder === undefined) return;
    const now = this.#now();
    const account = this.#accounts.get(holder) ?? { excessMs: 0, at: now, turn: this.#turn, workInTurnMs: 0 };
    account.excessMs = excessAt(account, now) + ms;
    account.at = now;
    if (account.turn !== this.#turn) account.workInTurnMs = 0;
    account.turn = this.#turn;
    account.workInTurnMs += ms;
    this.#accounts.set(holder, account);
    this.#endTurn();
  }

  #endTurn(): void {
    if (this.#isTurnEnding) return;
    this.#isTurnEnding = true;
    setImmediate(() => {
      this.#isTurnEnding = false;
      this.#turn += 1;
    });
  }
}

function excessAt({ excessMs, at }: Account, now: number): number {
  return Math.max(0, excessMs - share * (now - at));
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
