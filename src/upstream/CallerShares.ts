import type { SealedStore } from '../cache/SealedStore.js';
import { StoreError } from '../cache/stores/StoreError.js';

export interface CallerSharesOptions {
  readonly store: SealedStore;
  /** What all callers may take together in one period. */
  readonly total: number;
  /** What one caller may take of that which the others have left, from 0 to 1. */
  readonly share: number;
  /** First parts of the names of the counters. */
  readonly name: readonly string[];
  readonly counterTtlMs: number;
}

const maxCallers = 10_000;
/** How far above the total a count may be, because those that were refused are counted too; more cannot be true. */
const maxRefused = 10_000;

/**
 * Keeps one caller from using up what all share, over the whole fleet. While the store is away each process bounds what a
 * caller takes there.
 */
export class CallerShares {
  readonly #options: CallerSharesOptions;
  #period = Number.NaN;
  /** What each caller has taken in the present period, as last heard. */
  readonly #taken = new Map<string, number>();

  constructor(options: CallerSharesOptions) {
    this.#options = options;
  }

  /** Takes one of `holder`'s share in `period`, of which all callers have taken `takenByAll`; tells whether there was one. */
  async take(holder: string, period: number, takenByAll: number): Promise<boolean> {
    this.#begin(period);
    const before = this.#taken.get(holder) ?? 0;
    if (before >= this.#allowed(before, takenByAll)) return false;
    this.#note(holder, before + 1); // others of this caller may be asking at the same time
    const counted = await this.#count(holder, period);
    if (counted === undefined) return true;
    if (this.#period === period) this.#note(holder, Math.max(counted, this.#taken.get(holder) ?? 0));
    return counted <= this.#allowed(counted, takenByAll);
  }

  /** At least one, however little is left. */
  #allowed(own: number, takenByAll: number): number {
    const { total, share } = this.#options;
    return Math.max(1, Math.floor(share * (total - Math.max(0, takenByAll - own))));
  }

  #begin(period: number): void {
    if (this.#period === period) return;
    this.#period = period;
    this.#taken.clear();
  }

  #note(holder: string, taken: number): void {
    this.#taken.set(holder, taken);
    const [oldest] = this.#taken.keys();
    if (this.#taken.size > maxCallers && oldest !== undefined) this.#taken.delete(oldest);
  }

  /** Undefined when the store is away, or says what cannot be true. */
  async #count(holder: string, period: number): Promise<number | undefined> {
    const { store, name, counterTtlMs, total } = this.#options;
    try {
      return (await store.increment([...name, String(period), holder], 1, counterTtlMs, total + maxRefused)).count;
    } catch (error) {
      if (error instanceof StoreError) return undefined;
      throw error;
    }
  }
}
