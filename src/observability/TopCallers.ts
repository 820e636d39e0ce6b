import type { Logger } from './log.js';

export interface TopCallersOptions {
  readonly log: Logger;
  /** A caller's name in the log, by the caller's key. */
  readonly nameOf: (callerKey: string) => string;
  readonly everyMs?: number;
}

const shown = 5;
/** Callers counted at once. */
const maxCounted = 1000;

/**
 * Logs who causes the load of this process: once a minute, if anything was counted, one line with the callers for whom most
 * calls to the service were made, and those refused most often.
 */
export class TopCallers {
  readonly #calls = new HeavyHitters();
  readonly #refused = new HeavyHitters();
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: TopCallersOptions) {}

  /** Counts a call to the service for a caller; undefined for those that cannot be told apart. */
  onCall(callerKey: string | undefined): void {
    this.#count(this.#calls, callerKey);
  }

  onRefusal(callerKey: string | undefined): void {
    this.#count(this.#refused, callerKey);
  }

  /** Logs what was counted since the last line. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#calls.total + this.#refused.total === 0) return;
    const calls = this.#topOf(this.#calls);
    const refused = this.#topOf(this.#refused);
    const totals = { totalCalls: this.#calls.total, totalRefused: this.#refused.total };
    this.#calls.clear();
    this.#refused.clear();
    this.options.log.info({ ...totals, calls, refused }, 'top callers');
  }

  #count(counts: HeavyHitters, callerKey: string | undefined): void {
    counts.add(callerKey ?? '');
    this.#timer ??= setTimeout(() => this.flush(), this.options.everyMs ?? 60_000).unref();
  }

  #topOf(counts: HeavyHitters) {
    return counts.top(shown).map(([key, count]) => ({
      caller: key === '' ? 'not identified' : this.options.nameOf(key),
      count,
    }));
  }
}

/**
 * Counts in bounded memory (Misra and Gries, 1982). Every key with more than a thousandth of the total is found; with more
 * than a thousand keys, each count is too low by at most a thousandth of the total.
 */
export class HeavyHitters {
  readonly #counts = new Map<string, number>();
  total = 0;

  add(key: string): void {
    this.total += 1;
    const count = this.#counts.get(key);
    if (count !== undefined || this.#counts.size < maxCounted) {
      this.#counts.set(key, (count ?? 0) + 1);
      return;
    }
    for (const [other, held] of this.#counts) {
      if (held === 1) this.#counts.delete(other);
      else this.#counts.set(other, held - 1);
    }
  }

  top(most: number): readonly (readonly [key: string, count: number])[] {
    return [...this.#counts].sort(([, one], [, other]) => other - one).slice(0, most);
  }

  clear(): void {
    this.#counts.clear();
    this.total = 0;
  }
}
