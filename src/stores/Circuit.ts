import { StoreError, type StoreTrouble } from './StoreError.js';
import { timeLimit } from './timeLimit.js';

/** What came of a call to the primary store. `asked`: the store may have done the operation, although no answer came. */
export type Answer<T> =
  | { readonly answered: true; readonly value: T }
  | { readonly answered: false; readonly asked: boolean };

/** Failures in a row that open a circuit. */
export const failuresToOpen = 2;

/** A circuit breaker with a time limit. While it is open, no call is made; only a successful {@link probe} closes it. */
export class Circuit {
  #isClosed = true;
  #failures = 0;
  /** The first of the current failures in a row. Later ones are often only its consequence, such as a reconnect. */
  #firstTrouble: readonly [trouble: StoreTrouble, detail?: string | undefined] = ['failed'];

  constructor(
    private readonly limitMs: number,
    private readonly onOpen: (trouble: StoreTrouble, detail?: string) => void,
    private readonly onClose: () => void,
  ) {}

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async ask<T>(work: () => Promise<T>): Promise<Answer<T>> {
    if (!this.#isClosed) return { answered: false, asked: false };
    try {
      const value = await timeLimit(work, this.limitMs);
      this.#failures = 0;
      return { answered: true, value };
    } catch (error) {
      const trouble = error instanceof StoreError ? error.trouble : 'failed';
      if (trouble === 'closed') throw error;
      if (this.#failures++ === 0) {
        this.#firstTrouble = [trouble, error instanceof StoreError ? error.detail : undefined];
      }
      if (this.#isClosed && this.#failures >= failuresToOpen) {
        this.#isClosed = false;
        this.onOpen(...this.#firstTrouble);
      }
      return { answered: false, asked: true };
    }
  }

  /** Calls the store even while the circuit is open; success closes it. */
  async probe(work: () => Promise<unknown>): Promise<boolean> {
    if (this.#isClosed) return (await this.ask(work)).answered;
    const isPassed = timeLimit(work, this.limitMs).then(() => true);
    if (!(await isPassed.catch(() => false))) return false;
    if (this.#isClosed) return true; // another probe closed it
    this.#isClosed = true;
    this.#failures = 0;
    this.onClose();
    return true;
  }
}
