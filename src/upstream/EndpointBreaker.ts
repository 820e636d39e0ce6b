import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/BoundedCache.js';
import { type Runtime, realRuntime } from '../process/Runtime.js';

export type BreakerState = 'open' | 'half-open' | 'closed';

/** One call as the breaker sees it. */
export interface BreakerCall {
  /** Who the call is made for: `holderOf` the caller. Callers without an identity count as one. */
  readonly holder?: string | undefined;
  /** What the call is about, such as a taxpayer or a job. A call without a subject counts as a subject of its own. */
  readonly subject?: string | undefined;
}

/** Set by the call while it runs. `not-made`: nothing was sent, so the call says nothing about the endpoint. */
export interface CallRecord {
  outcome: 'not-made' | 'answered' | 'failed';
}

/** Failures and answers count for this long, in milliseconds. */
const windowMs = 10_000;
/** A holder's breaker opens when this many of its subjects fail, and at least half of those seen. */
const failingSubjectsToOpen = 5;
/** An outage is this many holders with an open breaker, or this many failing, and at least half of the holders seen. */
const openHoldersOfAnOutage = 2;
const failingHoldersOfAnOutage = 5;
const maxHolders = 500;
/** Per holder. */
const maxSubjects = 20;

/**
 * A circuit breaker per holder: stops the calls of a holder to an endpoint that keeps failing. It opens by the share of
 * subjects that fail, so that neither one id nor one holder's ids close the endpoint for others. It opens for all holders when
 * the endpoint fails for at least half of them. After the reset time one call of the holder is the trial; its others wait.
 */
export class EndpointBreaker {
  readonly #holders = new BoundedCache<HolderBreaker>({
    max: maxHolders,
    memoMethod: () => new HolderBreaker(this.runtime.monotonicNow),
  });
  /** When an outage ends: by time alone, because one holder could make a trial fail. */
  #outageUntil = -Infinity;

  /** @param resetMs how long calls are refused once there were too many failures */
  constructor(
    private readonly resetMs: number,
    private readonly runtime: Runtime = realRuntime,
  ) {}

  /** `open` while the calls of at least one holder are refused. */
  get state(): BreakerState {
    const now = this.runtime.monotonicNow();
    if (now < this.#outageUntil) return 'open';
    const states = new Set([...this.#holders.values()].map((holder) => holder.stateAt(now)));
    return states.has('open') ? 'open' : states.has('half-open') ? 'half-open' : 'closed';
  }

  /** @throws GatewayError UPSTREAM_UNAVAILABLE in place of a call that is not made; whatever `call` throws */
  async run<T>({ holder, subject }: BreakerCall, call: (record: CallRecord) => Promise<T>): Promise<T> {
    const own = this.#holders.memo(holder ?? '');
    for (;;) {
      const now = this.runtime.monotonicNow();
      own.seenAt = now;
      if (now < this.#outageUntil) throw refusal(this.#outageUntil - now);
      if (now < own.openUntil) throw refusal(own.openUntil - now, { holder });
      if (!own.trial) break;
      await own.trial; // it may end without a call: then this call may become the next trial
    }
    const isTrial = own.stateAt(this.runtime.monotonicNow()) === 'half-open';
    const record: CallRecord = { outcome: 'not-made' };
    const made = call(record).finally(() => this.#settle(own, subject, record.outcome, isTrial));
    if (isTrial) own.trial = made.catch(() => {});
    return made;
  }

  #settle(own: HolderBreaker, subject: string | undefined, outcome: CallRecord['outcome'], isTrial: boolean): void {
    if (isTrial) own.trial = undefined;
    if (outcome === 'not-made') return;
    own.subjectFailed.set(subject ?? Symbol('a call by itself'), outcome === 'failed');
    if (outcome === 'answered' && isTrial) own.close();
    if (outcome === 'answered') return;
    const now = this.runtime.monotonicNow();
    if (isTrial || (own.stateAt(now) === 'closed' && own.failingSubjects >= failingSubjectsToOpen)) {
      own.openUntil = now + this.resetMs;
    }
    if (this.#isOutage(now)) this.#outageUntil = now + this.resetMs;
  }

  #isOutage(now: number): boolean {
    const seen = [...this.#holders.values()].filter(({ seenAt }) => now - seenAt <= windowMs);
    const open = seen.filter((holder) => holder.stateAt(now) === 'open').length;
    const failing = seen.filter(({ failingSubjects }) => failingSubjects > 0).length;
    const isShared = (holders: number, least: number) => holders >= least && holders * 2 >= seen.length;
    return isShared(open, openHoldersOfAnOutage) || isShared(failing, failingHoldersOfAnOutage);
  }
}

/** The recent outcomes of one holder's calls to the endpoint. All times are those of the monotonic clock. */
class HolderBreaker {
  /** When the holder last asked for a call, made or refused. */
  seenAt = -Infinity;
  openUntil = -Infinity;
  /** Settles when the trial under way has ended. */
  trial: Promise<unknown> | undefined;
  /** Whether the last call about each subject failed. */
  readonly subjectFailed: BoundedCache<boolean, string | symbol>;

  constructor(now: () => number) {
    this.subjectFailed = new BoundedCache({ max: maxSubjects, ttl: windowMs, ttlResolution: 0, perf: { now } });
  }

  /** How many subjects fail; 0 while fewer than half of them do. */
  get failingSubjects(): number {
    const all = [...this.subjectFailed.values()];
    const failing = all.filter((failed) => failed).length;
    return failing * 2 >= all.length ? failing : 0;
  }

  /** Without a trial, `half-open` turns into `closed` after the time for which failures count. */
  stateAt(now: number): BreakerState {
    if (now < this.openUntil) return 'open';
    return now < this.openUntil + windowMs ? 'half-open' : 'closed';
  }

  close(): void {
    this.openUntil = -Infinity;
    this.subjectFailed.clear();
  }
}

/** `onlyFor` names the holder whose breaker is open, unless the endpoint fails for all. */
function refusal(waitMs: number, onlyFor?: { readonly holder: string | undefined }): GatewayError {
  const message = 'The service kept failing: the gateway pauses its calls for a moment';
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  const reason = onlyFor ? "the breaker is open for this caller's calls" : 'the breaker is open for all calls';
  return new GatewayError('UPSTREAM_UNAVAILABLE', message, { retryAfterSeconds, reason, onlyFor });
}
