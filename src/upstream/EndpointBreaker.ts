import { LRUCache } from 'lru-cache';

export type BreakerState = 'open' | 'half-open' | 'closed';

export interface EndpointBreakerOptions {
  /** How long calls are refused once there were too many failures, in milliseconds. */
  readonly resetMs: number;
  /** Milliseconds of a clock that nobody sets. Default `performance.now`. */
  readonly now?: () => number;
}

/** One call as the breaker sees it. */
export interface BreakerCall {
  /** Who the call is made for; undefined for callers without an identity, who count as one. */
  readonly holder?: string | undefined;
  /** What the call is about; a call without one is about itself alone. */
  readonly subject?: string | undefined;
}

/** Set by the call while it runs. `not-made`: nothing has left, so nothing is known about the endpoint. */
export interface CallRecord {
  outcome: 'not-made' | 'answered' | 'failed';
}

/** Thrown in place of a call that is not made. */
export class BreakerOpen extends Error {
  constructor(
    readonly retryAfterMs: number,
    /** Whose breaker it is; undefined when the endpoint fails for everybody. */
    readonly refused: { readonly holder: string | undefined } | undefined,
  ) {
    super('The breaker is open');
  }
}

/** Failures and answers count for this long, in milliseconds. */
export const windowMs = 10_000;
/** So many subjects of one holder have to fail, and at least half of those seen. */
const failingSubjectsToOpen = 5;
/** Of so many holders the breakers have to be open, or so many have to fail most of the time, and half of those seen. */
const openHoldersOfAnOutage = 2;
const failingHoldersOfAnOutage = 5;
const maxHolders = 500;
/** The latest of each holder. */
const maxSubjects = 20;

/**
 * Stops calls to an endpoint that keeps failing, for the caller whose calls fail. It opens by the share of failing subjects
 * (taxpayers, jobs), so that neither one id nor one caller's ids close the endpoint for others; for everybody it opens when
 * it fails for at least half of the callers. After the time one call of the holder tries again while its others wait.
 */
export class EndpointBreaker {
  readonly #resetMs: number;
  readonly #now: () => number;
  readonly #holders = new LRUCache<string, HolderBreaker>({ max: maxHolders });
  /** Until when the endpoint is left alone by everybody; it then needs new failures, and no trial that one caller could spoil. */
  #outageUntil = -Infinity;

  constructor({ resetMs, now = () => performance.now() }: EndpointBreakerOptions) {
    this.#resetMs = resetMs;
    this.#now = now;
  }

  /** `open` while it refuses calls of anybody. */
  get state(): BreakerState {
    const now = this.#now();
    if (now < this.#outageUntil) return 'open';
    const states = [...this.#holders.values()].map((holder) => holder.stateAt(now));
    return states.find((state) => state === 'open') ?? states.find((state) => state === 'half-open') ?? 'closed';
  }

  /** @throws BreakerOpen; or whatever `call` throws */
  async run<T>({ holder, subject }: BreakerCall, call: (record: CallRecord) => Promise<T>): Promise<T> {
    const own = this.#breakerOf(holder ?? '');
    const endTrial = await this.#admit(own, holder);
    const record: CallRecord = { outcome: 'not-made' };
    try {
      return await call(record);
    } finally {
      this.#settle(own, subject ?? Symbol('a call by itself'), record.outcome, endTrial !== undefined);
      endTrial?.();
    }
  }

  /** Gives the function that ends the trial when the call is one. */
  async #admit(own: HolderBreaker, holder: string | undefined): Promise<(() => void) | undefined> {
    for (;;) {
      const now = this.#now();
      own.seenAt = now;
      if (now < this.#outageUntil) throw new BreakerOpen(this.#outageUntil - now, undefined);
      if (now < own.openUntil) throw new BreakerOpen(own.openUntil - now, { holder });
      if (own.trial === undefined) return own.stateAt(now) === 'half-open' ? own.beginTrial() : undefined;
      await own.trial; // which may not have been made: then ours is the next
    }
  }

  #settle(own: HolderBreaker, subject: string | symbol, outcome: CallRecord['outcome'], isTrial: boolean): void {
    if (outcome === 'not-made') return;
    const now = this.#now();
    const before = own.stateAt(now);
    own.note(subject, outcome === 'failed', now);
    if (outcome === 'answered') {
      if (isTrial) own.close();
      return;
    }
    if (isTrial || (before === 'closed' && own.failingSubjects >= failingSubjectsToOpen && own.isFailing)) {
      own.openUntil = now + this.#resetMs;
    }
    if (this.#isOutage(now)) this.#outageUntil = now + this.#resetMs;
  }

  #isOutage(now: number): boolean {
    let seen = 0;
    let open = 0;
    let failing = 0;
    for (const holder of this.#holders.values()) {
      if (now - holder.seenAt > windowMs) continue;
      seen += 1;
      if (holder.stateAt(now) === 'open') open += 1;
      if (holder.isFailing && now - holder.notedAt <= windowMs) failing += 1;
    }
    const isShared = (holders: number, least: number) => holders >= least && holders * 2 >= seen;
    return isShared(open, openHoldersOfAnOutage) || isShared(failing, failingHoldersOfAnOutage);
  }

  #breakerOf(holder: string): HolderBreaker {
    const known = this.#holders.get(holder);
    if (known !== undefined) return known;
    const added = new HolderBreaker();
    this.#holders.set(holder, added);
    return added;
  }
}

/** What one holder's calls to the endpoint met. All times are of the breaker's clock. */
class HolderBreaker {
  /** The last time a call was wanted, made or not. */
  seenAt = -Infinity;
  /** The last time a call ended. */
  notedAt = -Infinity;
  openUntil = -Infinity;
  /** Settles when the trial under way has ended. */
  trial: Promise<void> | undefined;
  failingSubjects = 0;
  /** The last outcome of each subject, the latest last. */
  readonly #subjects = new Map<string | symbol, { readonly at: number; readonly failed: boolean }>();

  /** At least half of the subjects failed when a call ended last. */
  get isFailing(): boolean {
    return this.failingSubjects > 0 && this.failingSubjects * 2 >= this.#subjects.size;
  }

  /** A holder that does not come back for its trial is forgotten like its failures. */
  stateAt(now: number): BreakerState {
    if (now < this.openUntil) return 'open';
    return now < this.openUntil + windowMs ? 'half-open' : 'closed';
  }

  note(subject: string | symbol, failed: boolean, now: number): void {
    this.notedAt = now;
    this.#subjects.delete(subject);
    this.#subjects.set(subject, { at: now, failed });
    for (const [oldest, { at }] of this.#subjects) {
      if (now - at <= windowMs && this.#subjects.size <= maxSubjects) break;
      this.#subjects.delete(oldest);
    }
    this.failingSubjects = [...this.#subjects.values()].filter((one) => one.failed).length;
  }

  close(): void {
    this.openUntil = -Infinity;
    this.failingSubjects = 0;
    this.#subjects.clear();
  }

  /** Gives the function that ends it. */
  beginTrial(): () => void {
    let end: () => void = () => {};
    this.trial = new Promise((resolve) => {
      end = resolve;
    });
    return () => {
      this.trial = undefined;
      end();
    };
  }
}
