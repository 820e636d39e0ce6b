// How long changes wait until somebody is shown them.

/**
 * The changes of a number of things. A change waits from the first look after it, or from itself while it is watched. Its lag
 * ends when a look would have shown it: nobody looks at night, which is no fault of a rule. Its wait ends when one did.
 */
export class Lags {
  /** Of each change that was shown. */
  shown = [];
  /** The same as a reader sees it: changes that came before the first of them was shown are one. */
  steps = [];
  #waiting = [];
  #watchers = [];

  /** Expects another thing; returns its number. */
  add() {
    this.#watchers.push(0);
    return this.#waiting.push([]) - 1;
  }

  /** `before` is when the state that ended had begun. */
  happened(thing, { at, before, state, stage }) {
    this.#waiting[thing].push({ at, before, state, stage, from: this.#watchers[thing] > 0 ? at : undefined });
  }

  watched(thing, by) {
    this.#watchers[thing] += by;
  }

  /** Whether a look is needed to know since when a change has been waiting. */
  awaitsLook(thing) {
    const waiting = this.#waiting[thing];
    return waiting.length > 0 && waiting[waiting.length - 1].from === undefined;
  }

  looked(thing, now) {
    for (const change of this.#waiting[thing]) change.from ??= now;
  }

  /** Somebody was shown what hides the changes, and would be until `until`. */
  hid(thing, until) {
    for (const change of this.#waiting[thing]) change.hiddenUntil = until;
  }

  /** Somebody saw `state`: changes to it, and to those before it, wait no longer. */
  saw(thing, state, now) {
    const waiting = this.#waiting[thing];
    const last = waiting.findIndex((change) => change.state === state);
    const seen = waiting.splice(0, last + 1).map(({ at, before, stage, from = now, hiddenUntil = now }) => {
      const lag = Math.min(now, Math.max(hiddenUntil, from)) - from;
      return { stage, lasted: at - before, lag, wait: now - from };
    });
    this.shown.push(...seen);
    this.steps.push(...seen.slice(0, 1));
  }
}
