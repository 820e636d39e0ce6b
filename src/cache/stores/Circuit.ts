import { StoreError, type StoreTrouble, troubleOf } from './StoreError.js';
import { timeLimit } from './timeLimit.js';

export interface CircuitOptions {
  readonly limitMs: number;
  /** Failures in a row that open it. */
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
 * only {@link probe}, which no request waits for, can close it again. No clock decides, so none can keep it open.
 */
export class Circuit {
  readonly #options: CircuitOptions;
  #isClosed = true;
  #failures = 0;
  /** What began the current row of failures; the later ones are often only its consequence, such as a reconnect. */
  #firstTrouble: StoreTrouble = 'failed';

  constructor(options: CircuitOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async ask<T>(work: () => Promise<T>): Promise<Answer<T>> {
    if (!this.#isClosed) return { answered: false, asked: false };
    try {
      const value = await timeLimit(work, this.#options.limitMs);
      this.#failures = 0;
      return { answered: true, value };
    } catch (error) {
      if (error instanceof StoreError && error.trouble === 'closed') throw error;
      if (this.#failures === 0) this.#firstTrouble = troubleOf(error);
      this.#failures += 1;
      if (this.#isClosed && this.#failures >= this.#options.failuresToOpen) {
        this.#isClosed = false;
        this.#options.onOpen(this.#firstTrouble);
      }
      return { answered: false, asked: true };
    }
  }

  /** Asks even though the circuit is open; success closes it. */
  async probe(work: () => Promise<unknown>): Promise<boolean> {
    if (this.#isClosed) return (await this.ask(work)).answered;
    const passed = await timeLimit(work, this.#options.limitMs).then(
      () => true,
      () => false,
    );
    if (passed && !this.#isClosed) {
      this.#isClosed = true;
      this.#failures = 0;
      this.#options.onClose();
    }
    return passed;
  }
}
