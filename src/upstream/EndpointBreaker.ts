import { GatewayError } from '../errors/errors.js';
import { BoundedCache } from '../process/memory.js';

/** One call as the breaker sees it. */
interface BreakerCall {
  /** Who the call is made for: the holder of the caller. Callers without an identity count as one. */
  readonly holder?: string | undefined;
  /** What the call is about, such as a taxpayer or a job. */
  readonly subject: string;
  /** Whom the call is about. Default: the subject. */
  readonly taxpayer?: string | undefined;
}

/** Set by the call while it runs. `not-made`: nothing was sent, so the call says nothing about the endpoint. */
export interface CallRecord {
  outcome: 'not-made' | 'answered' | 'failed';
}

/** A holder's breaker opens when its calls about this many subjects fail, with no answer between. */
const subjectsInARow = 5;
/** The breaker for all opens when the calls of this many holders about different taxpayers fail, with no answer between. */
const holdersInARow = 3;
/** Failures count for this long, in milliseconds. */
const windowMs = 10_000;
const maxHolders = 500;
/** The holder of callers without an identity. */
const nobody = '';

/**
 * Stops the calls to an endpoint that keeps failing, by a circuit breaker for each holder and one for all. Neither one id nor
 * one holder can open the breaker for all. After the reset time one call is the trial, and others are refused until its answer.
 */
export class EndpointBreaker {
  readonly #holders = new BoundedCache<Breaker>({ max: maxHolders, memoMethod: () => new Breaker(subjectsInARow) });
  readonly #all = new Breaker(holdersInARow);
  /**
   * The holder of the latest call, if it failed while the breaker for all was open. Others may try before that holder, so that
   * no holder can keep the breaker for all open.
   */
  #failedLast: string | undefined;

  /** `resetMs`: how long calls are refused once there were too many failures. */
  constructor(private readonly resetMs: number) {}

  /** @throws GatewayError UPSTREAM_UNAVAILABLE in place of a call that is not made; whatever `call` throws */
  async run<T>(about: BreakerCall, call: (record: CallRecord) => Promise<T>): Promise<T> {
    const { holder = nobody, subject, taxpayer = subject } = about;
    const refusal = this.refusalOf(holder);
    if (refusal !== undefined) throw refusal;
    const all = this.#all;
    const own = this.#holders.memo(holder);
    const onTrial = [all, own].filter((breaker) => breaker.isOpen);
    for (const breaker of onTrial) breaker.openUntil = performance.now() + this.resetMs;
    const record: CallRecord = { outcome: 'not-made' };
    try {
      return await call(record);
    } finally {
      switch (record.outcome) {
        case 'not-made':
          // The next call may be the trial, unless the answer to another call has closed the breaker meanwhile.
          for (const breaker of onTrial) if (breaker.isOpen) breaker.openUntil = performance.now();
          break;
        case 'answered':
          this.#failedLast = undefined;
          all.close();
          own.close();
          break;
        case 'failed':
          this.#failedLast = all.isOpen ? holder : undefined;
          own.noteFailure(subject, subject, this.resetMs);
          all.noteFailure(holder, taxpayer, this.resetMs);
      }
    }
  }

  /** Why a call of the holder would not be made now; undefined when it would be. */
  refusalOf(holder = nobody): GatewayError | undefined {
    const now = performance.now();
    const { openUntil } = this.#all;
    const mayTryAt = openUntil + (holder === this.#failedLast ? windowMs : 0); // others first
    const waitMs = Math.max(mayTryAt, this.#holders.memo(holder).openUntil) - now;
    if (waitMs <= 0) return undefined;
    const isForAll = now < openUntil;
    return new GatewayError(
      'UPSTREAM_UNAVAILABLE',
      'The service kept failing: the gateway pauses its calls for a moment',
      {
        retryAfterSeconds: waitMs / 1000,
        reason: `the breaker is open for ${isForAll ? 'all' : "this caller's"} calls`,
        onlyFor: isForAll ? undefined : { holder: holder || undefined },
      },
    );
  }
}

interface Failure {
  /** By the monotonic clock. */
  readonly at: number;
  readonly by: string;
  readonly about: string;
}

class Breaker {
  /** By the monotonic clock. Past this time one call may try. */
  openUntil = -Infinity;
  #inARow: readonly Failure[] = [];

  constructor(private readonly mostInARow: number) {}

  /** Until a trial succeeds, or nobody has tried for as long as failures count. */
  get isOpen(): boolean {
    return performance.now() < this.openUntil + windowMs;
  }

  /** Opens after too many failures in a row, each `by` and each `about` counted once. An open breaker opens anew. */
  noteFailure(by: string, about: string, resetMs: number): void {
    const at = performance.now();
    const recent = this.#inARow.filter((failure) => at - failure.at < windowMs);
    const others = recent.filter((failure) => failure.by !== by);
    this.#inARow = others.some((failure) => failure.about === about) ? recent : [...others, { at, by, about }];
    if (this.isOpen || this.#inARow.length >= this.mostInARow) this.openUntil = at + resetMs;
  }

  close(): void {
    this.#inARow = [];
    this.openUntil = -Infinity;
  }
}
