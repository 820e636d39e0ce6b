import type { Caller } from '../auth/caller.js';
import { BoundedCache, mostRemembered } from '../process/memory.js';
import { Load } from './Load.js';
import { Pace } from './Pace.js';
import { type Holder, rateLimited } from './Places.js';
import { Rounds } from './Rounds.js';

/** Whom limits count for: the caller or, where callers cannot be told apart, the address. */
interface Asker {
  readonly caller: Caller;
  readonly remoteAddress: string | undefined;
}

/** Most callers whose paces are remembered. A pace and its key take some 400 bytes. */
const maxCallers = mostRemembered(400);

/**
 * The milliseconds of work of one caller while others ask as well: a tenth of the event loop's time, and 100 ms at once. Work is
 * counted when it is done, so no amount of it is refused.
 */
const workRate = { atOnce: 100, everyMs: 10, longestMs: Infinity };
/** Shorter work is not charged, in milliseconds: the limit on root fields bounds how much of it there is. */
const leastChargedMs = 1;
/** How long after a caller's last operation others still make room for it. */
const presentMs = 1000;
/** Below this utilization of the event loop no caller is refused for its work. */
const busyUtilization = 0.5;

/** A caller's refusals, 500 a second after the first hundred; one that would wait longer than a second ends its connection. */
const refusalRate = { atOnce: 100, everyMs: 2, longestMs: 1000 };
const maxRefused = 10_000;
/** Most requests of one address that wait for their turn. Measured: one takes up to 45 kB. */
const mostWaiting = mostRemembered(45_000);

/**
 * What each caller may take of this process over time: root fields, a share of its time, and refusals.
 *
 * Nothing else runs while an operation is read, checked and answered, so its time is noted, and each caller's work is spread
 * over {@link Rounds}. Nobody is refused for the time they take while no other caller is there, or while the process is not busy.
 */
export class Quota {
  readonly #refusals = new BoundedCache<Pace>({ max: maxRefused, memoMethod: () => new Pace(refusalRate) });
  readonly #fields;
  readonly #work = new BoundedCache<Pace>({ max: maxCallers, memoMethod: () => new Pace(workRate) });
  readonly #rounds = new Rounds();
  /** The holder of the last operation; null before the first. */
  #latestHolder: Holder | null = null;
  #othersSeenAt = -Infinity;
  readonly #load = new Load();

  /** `perMinute`: root fields of operations that a caller may ask for in a minute; 0 means no limit. */
  constructor(private readonly perMinute: number) {
    const rate = { atOnce: perMinute, everyMs: 60_000 / perMinute, longestMs: 0 };
    this.#fields = new BoundedCache<Pace>({ max: maxCallers, memoMethod: () => new Pace(rate) });
  }

  /**
   * Counts one root field of an operation that has come.
   * @throws GatewayError RATE_LIMITED (429); a refused field does not count
   */
  admit(asker: Asker): void {
    const { holder } = asker.caller;
    if (holder !== this.#latestHolder && this.#latestHolder !== null) this.#othersSeenAt = performance.now();
    this.#latestHolder = holder;
    this.refuseBeyondShare(holder);
    this.#takeFields(asker, 1);
  }

  /**
   * Counts the other root fields of an operation that was admitted. A caller may use a minute's allowance at once; it refills
   * evenly. @throws GatewayError RATE_LIMITED (429); then the first field, counted by `admit`, is given back
   */
  takeOtherFields(asker: Asker, others: number): void {
    try {
      this.#takeFields(asker, others);
    } catch (error) {
      this.#takeFields(asker, -1);
      throw error;
    }
  }

  #takeFields(asker: Asker, rootFields: number): void {
    const { perMinute } = this;
    if (perMinute === 0) return;
    const waitMs = this.#fields.memo(keyOf(asker)).take(rootFields);
    if (waitMs === 0) return;
    const message = `At most ${perMinute} root fields per minute (RATE_LIMIT_PER_MINUTE)`;
    throw rateLimited(message, { retryAfterSeconds: waitMs / 1000 });
  }

  /** Counts `weight` refusals. Returns the milliseconds until they may be answered; undefined when too many wait already. */
  waitOfRefusal(asker: Partial<Asker>, weight = 1): number | undefined {
    const waitMs = this.#refusals.memo(keyOf(asker)).take(weight);
    return waitMs > refusalRate.longestMs ? undefined : waitMs;
  }

  /**
   * Does `work`, and notes for `holder` how long it keeps the event loop busy: until it returns, even if it returns a
   * promise.
   */
  timed<Result>(holder: Holder, work: () => Result): Result {
    const beganAt = performance.now();
    try {
      return work();
    } finally {
      const ms = performance.now() - beganAt;
      if (ms >= leastChargedMs) this.spend(holder, ms);
      else this.#rounds.note(holder, ms);
    }
  }

  /**
   * Charges `ms` milliseconds of work to a holder's share, less the part of the time in which the process had no CPU lately.
   */
  spend(holder: Holder, ms: number): void {
    this.#rounds.note(holder, ms);
    if (holder === undefined) return;
    this.#work.memo(holder).take(ms * this.#load.measure().ranShare);
  }

  /** What to wait for before an operation is read, if anything: see {@link Rounds.turnOf}. Never throws. */
  turnOf(holder: Holder): Promise<void> | undefined {
    return this.#rounds.turnOf(holder);
  }

  /**
   * Waits for the turn of an address to begin work of about `ms` milliseconds, which is not charged. False if too many of the
   * address wait, or the connection has gone meanwhile: then nothing is noted, so the next in the line has its turn at once.
   */
  async begin(address: string | undefined, ms: number, connection: { readonly destroyed: boolean }): Promise<boolean> {
    const network = networkOf(address);
    if (this.#rounds.waiting(network) >= mostWaiting) return false;
    const turn = this.#rounds.turnOf(network);
    if (turn !== undefined) await turn;
    if (connection.destroyed) return false;
    this.#rounds.note(network, ms);
    return true;
  }

  /** Waits for a turn to continue an operation. Its work cannot be measured: charges an estimate of `ms` milliseconds. */
  async resume(holder: Holder, ms: number): Promise<void> {
    const turn = this.#rounds.turnOf(holder, 'first');
    if (turn !== undefined) await turn;
    this.spend(holder, ms);
  }

  /** @throws GatewayError RATE_LIMITED (429) when the holder has used up its share, others are active and the process is busy */
  refuseBeyondShare(holder: Holder): void {
    if (holder === undefined) return;
    const waitMs = this.#work.get(holder)?.take(0) ?? 0;
    const hasOthers = performance.now() - this.#othersSeenAt <= presentMs;
    if (waitMs === 0 || !hasOthers || this.#load.measure().utilization < busyUtilization) return;
    const retryAfterSeconds = waitMs / 1000;
    throw rateLimited('Your operations take too much of the CPU time that all callers share', { retryAfterSeconds });
  }
}

/** The key of a caller's paces. Callers without an identity are told apart by their address. */
function keyOf({ caller, remoteAddress }: Partial<Asker>): string {
  return caller?.holder ?? `address ${networkOf(remoteAddress)}`;
}

/** What an address counts as in limits: one host may have every IPv6 address of a /64, so those count as one. */
export function networkOf(address: string | undefined): string | undefined {
  return address && (/^(?:\w+:){1,4}/.exec(address)?.[0] ?? address);
}
