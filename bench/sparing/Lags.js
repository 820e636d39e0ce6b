// Measures how long changes wait until a reader is shown them.

/**
 * The changes of some things, such as records. A change waits from the first look after it or, while a watcher is subscribed,
 * from the change itself, until a look shows it. Its lag ends when a look would have shown it: that nobody looks at night is
 * not the fault of a freshness rule.
 */
export class Lags {
  /** The lag of each change that was shown. */
  shown = [];
  /** As {@link shown}, but changes that were shown together count as one, with the figures of the first. */
  steps = [];
  #waiting = [];
  #watchers = [];

  /** Adds a thing; returns its number. */
  add() {
    this.#watchers.push(0);
    return this.#waiting.push([]) - 1;
  }

  /** A thing changed to `state`. `before` is when its previous state had begun. */
  happened(thing, { at, before, state, isSigning }) {
    this.#waiting[thing].push({ at, before, state, isSigning, from: this.#watchers[thing] > 0 ? at : undefined });
  }

  watched(thing, by) {
    this.#watchers[thing] += by;
  }

  looked(thing, now) {
    for (const change of this.#waiting[thing]) change.from ??= now;
  }

  /** A reader was shown a state that hides the waiting changes until `until`. */
  hid(thing, until) {
    for (const change of this.#waiting[thing]) change.hiddenUntil = until;
  }

  /** A reader was shown `state`: the change to it, and all earlier ones, wait no longer. */
  saw(thing, state, now) {
    const waiting = this.#waiting[thing];
    const last = waiting.findIndex((change) => change.state === state);
    const seen = waiting.splice(0, last + 1).map(({ at, before, isSigning, from = now, hiddenUntil = now }) => {
      const lag = Math.min(now, Math.max(hiddenUntil, from)) - from;
      return { isSigning, lasted: at - before, lag };
    });
    this.shown.push(...seen);
    this.steps.push(...seen.slice(0, 1));
  }
}
