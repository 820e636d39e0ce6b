/** How long an id that the service does not know is remembered, in milliseconds. */
export const absenceMs = 15_000;
/** The same when there are very many of them, in milliseconds. */
export const longestAbsenceMs = 900_000;
/** So many unknown ids an hour are usual. */
const usualPerHour = 10;
const hourMs = 3_600_000;

/**
 * Tells how long an unknown id is remembered: the longer, the more of them were met within the clock hour, because each
 * costs a call to the token endpoint when it is asked for again.
 */
export class UnknownTaxpayers {
  readonly #now: () => number;
  #hour = Number.NaN;
  #met = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts one more; gives its time in milliseconds. */
  meet(): number {
    const hour = Math.floor(this.#now() / hourMs);
    if (hour !== this.#hour) this.#met = 0;
    this.#hour = hour;
    this.#met += 1;
    return Math.min(longestAbsenceMs, absenceMs * Math.max(1, this.#met / usualPerHour));
  }
}
