import { CircuitState, ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel';
import { StoreError, type StoreTrouble, troubleOf } from './StoreError.js';
import { timeLimit } from './timeLimit.js';

export interface CircuitOptions {
  readonly limitMs: number;
  readonly failuresToOpen: number;
  readonly onOpen: (trouble: StoreTrouble) => void;
  readonly onClose: () => void;
}

/** An answer of the primary store, or why there is none. */
export type Answer<T> =
  | { readonly answered: true; readonly value: T }
  | { readonly answered: false; readonly trouble: StoreTrouble };

/**
 * A circuit breaker around one kind of operation, each limited in time. While it is open nothing is asked of the primary;
 * only {@link probe}, which no request waits for, can close it again.
 */
export class Circuit {
  readonly #policy;
  readonly #limitMs: number;

  constructor({ limitMs, failuresToOpen, onOpen, onClose }: CircuitOptions) {
    this.#limitMs = limitMs;
    this.#policy = circuitBreaker(handleAll, {
      breaker: new ConsecutiveBreaker(failuresToOpen),
      halfOpenAfter: 0, // when to probe is decided by whoever calls probe()
    });
    this.#policy.onBreak((reason) => onOpen('error' in reason ? troubleOf(reason.error) : 'failed'));
    this.#policy.onReset(onClose);
  }

  get isClosed(): boolean {
    return this.#policy.state === CircuitState.Closed;
  }

  async ask<T>(work: () => Promise<T>): Promise<Answer<T>> {
    return this.isClosed ? this.#execute(work) : { answered: false, trouble: 'unreachable' };
  }

  /** Asks even though the circuit is open; success closes it. */
  async probe(work: () => Promise<unknown>): Promise<boolean> {
    return (await this.#execute(work)).answered;
  }

  async #execute<T>(work: () => Promise<T>): Promise<Answer<T>> {
    try {
      return { answered: true, value: await this.#policy.execute(() => timeLimit(work, this.#limitMs)) };
    } catch (error) {
      if (error instanceof StoreError && error.trouble === 'closed') throw error;
      return { answered: false, trouble: troubleOf(error) };
    }
  }
}
