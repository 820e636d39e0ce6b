import { CircuitState, ConsecutiveBreaker, circuitBreaker, handleAll, isBrokenCircuitError } from 'cockatiel';
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
  /** `asked`: the question was sent, so it may have had its effect. */
  | { readonly answered: false; readonly asked: boolean };

/**
 * A circuit breaker around one kind of operation, each limited in time. While it is open nothing is asked of the primary;
 * only {@link probe}, which no request waits for, can close it again.
 */
export class Circuit {
  readonly #policy;
  readonly #limitMs: number;
  /** What began the current row of failures; the later ones are often only its consequence, such as a reconnect. */
  #firstTrouble: StoreTrouble | undefined;

  constructor({ limitMs, failuresToOpen, onOpen, onClose }: CircuitOptions) {
    this.#limitMs = limitMs;
    this.#policy = circuitBreaker(handleAll, {
      breaker: new ConsecutiveBreaker(failuresToOpen),
      // When to probe is decided by whoever calls probe(). Not 0: cockatiel compares this with the wall clock, and a clock
      // that was set back would keep the circuit open for as long.
      halfOpenAfter: Number.NEGATIVE_INFINITY,
    });
    this.#policy.onBreak(() => onOpen(this.#firstTrouble ?? 'failed'));
    this.#policy.onReset(onClose);
  }

  get isClosed(): boolean {
    return this.#policy.state === CircuitState.Closed;
  }

  async ask<T>(work: () => Promise<T>): Promise<Answer<T>> {
    return this.isClosed ? this.#execute(work) : { answered: false, asked: false };
  }

  /** Asks even though the circuit is open; success closes it. */
  async probe(work: () => Promise<unknown>): Promise<boolean> {
    return (await this.#execute(work)).answered;
  }

  async #execute<T>(work: () => Promise<T>): Promise<Answer<T>> {
    try {
      const value = await this.#policy.execute(() => this.#timed(work));
      return { answered: true, value };
    } catch (error) {
      if (error instanceof StoreError && error.trouble === 'closed') throw error;
      return { answered: false, asked: !isBrokenCircuitError(error) };
    }
  }

  async #timed<T>(work: () => Promise<T>): Promise<T> {
    try {
      const value = await timeLimit(work, this.#limitMs);
      this.#firstTrouble = undefined;
      return value;
    } catch (error) {
      this.#firstTrouble ??= troubleOf(error);
      throw error;
    }
  }
}
