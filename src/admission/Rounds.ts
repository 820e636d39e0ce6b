import { endOfTurn } from '../process/pause.js';
import type { Holder } from './Places.js';

/** What a caller may take of one round before its next work waits for the next round, in milliseconds. */
const perRoundMs = 2;
/** Most turns of the event loop in a round. In each, Node.js accepts one connection: a new caller must not wait behind many. */
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
  /** What waits, by how to go on. */
  readonly #lines = new Map<Holder, (() => void)[]>();
  /** Whether the round will end, because there was enough work. */
  #isEnding = false;

  /** Notes work of a caller, done or about to be done. */
  note(holder: Holder, ms: number): void {
    this.#work.set(holder, (this.#work.get(holder) ?? 0) + ms);
    this.#workOfAll += ms;
    if (this.#workOfAll >= perRoundMs && !this.#isEnding) void this.#endLater();
  }

  /**
   * What to wait for before work begins, if anything. Begin right after it, without another `await`, and note the work at its
   * end: those who ask meanwhile must find it. Operations that have begun (`hasBegun`) come before those that have not, the
   * latest of them first, so that they do not pile up.
   */
  turnOf(holder: Holder, hasBegun = false): Promise<void> | undefined {
    const waiting = this.#lines.get(holder);
    if (waiting === undefined && !this.#isUsedUp(holder)) return undefined;
    const line = waiting ?? [];
    this.#lines.set(holder, line);
    return new Promise((goOn) => {
      if (hasBegun) line.unshift(goOn);
      else line.push(goOn);
    });
  }

  #isUsedUp(holder: Holder): boolean {
    return (this.#work.get(holder) ?? 0) >= perRoundMs;
  }

  async #endLater(): Promise<void> {
    this.#isEnding = true;
    let turns = 0;
    do await endOfTurn();
    while (++turns < mostTurns && this.#lines.size > 0);
    this.#work.clear();
    this.#workOfAll = 0;
    this.#isEnding = false;
    // The answers of the turn, which await the same end, are written before the work that now begins.
    for (const [holder, line] of this.#lines) void this.#lead(holder, line);
  }

  /** Lets those in a line go on, one after the other, until the holder has used up its round; the next one leads the rest. */
  async #lead(holder: Holder, line: (() => void)[]): Promise<void> {
    while (line.length > 0 && !this.#isUsedUp(holder)) {
      line.shift()?.();
      await new Promise((resolve) => process.nextTick(resolve)); // comes after its work, which runs in microtasks
    }
    if (line.length === 0) this.#lines.delete(holder);
  }
}
