import { endOfTurn } from '../process/pause.js';
import type { Holder } from './Places.js';

/** What a caller may take of one round before its next work waits for the next round, in milliseconds. */
const perRoundMs = 2;
/**
 * Most turns of the event loop in a round. Node.js accepts one connection in each, and a new caller must not wait long for
 * that.
 */
const mostTurns = 32;

/**
 * Spreads the work of each caller over rounds, in which everything else gets its turn. A round ends with the turn of the event
 * loop in which all callers together have done {@link perRoundMs} of work or, while anything waits for the next, after
 * {@link mostTurns}. Callers without an identity count as one.
 */
export class Rounds {
  /** Work of each caller in this round, in milliseconds. */
  readonly #work = new Map<Holder, number>();
  #workOfAll = 0;
  /** What waits for its turn: for each caller a line of functions, each of which lets one piece of work begin. */
  readonly #lines = new Map<Holder, (() => void)[]>();

  /** Notes work of a caller, done or about to be done. */
  note(holder: Holder, ms: number): void {
    this.#work.set(holder, (this.#work.get(holder) ?? 0) + ms);
    const isEnding = this.#workOfAll >= perRoundMs;
    this.#workOfAll += ms;
    if (!isEnding && this.#workOfAll >= perRoundMs) void this.#endLater();
  }

  /**
   * What to wait for before work begins, if anything. Begin the work right after it, without another `await`, and note it at
   * its end: whoever asks next must find it noted. Operations that have begun join `first`, before all that wait, so that they
   * do not pile up.
   */
  turnOf(holder: Holder, joins: 'first' | 'last' = 'last'): Promise<void> | undefined {
    const waiting = this.#lines.get(holder);
    if (waiting === undefined && !this.#isUsedUp(holder)) return undefined;
    const line = waiting ?? [];
    this.#lines.set(holder, line);
    return new Promise((begin) => {
      if (joins === 'first') line.unshift(begin);
      else line.push(begin);
    });
  }

  /** How much work of a caller waits. */
  waiting(holder: Holder): number {
    return this.#lines.get(holder)?.length ?? 0;
  }

  #isUsedUp(holder: Holder): boolean {
    return (this.#work.get(holder) ?? 0) >= perRoundMs;
  }

  async #endLater(): Promise<void> {
    let turns = 0;
    do {
      await endOfTurn();
      turns += 1;
    } while (turns < mostTurns && this.#lines.size > 0);
    this.#work.clear();
    this.#workOfAll = 0;
    // The answers of this turn wait for the same end of turn, and are written before the work that begins here.
    for (const [holder, line] of this.#lines) void this.#serve(holder, line);
  }

  /** Lets the work in a line begin, one piece after the other, until the holder has used up its part of this round. */
  async #serve(holder: Holder, line: (() => void)[]): Promise<void> {
    while (line.length > 0 && !this.#isUsedUp(holder)) {
      line.shift()?.();
      await new Promise((resolve) => process.nextTick(resolve)); // until that work, which runs in microtasks, is done
    }
    if (line.length === 0) this.#lines.delete(holder);
  }
}
