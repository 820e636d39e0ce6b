import { setImmediate } from 'node:timers';

interface Event {
  readonly time: number;
  /** It returns false when it left no asynchronous work that the next event must wait for. */
  run: (() => unknown) | undefined;
}

/** An event queue in place of a clock: time passes only from one event to the next. */
export class VirtualTime {
  /** Milliseconds since the simulation began. */
  now = 0;
  /** The next one last; of several at one time, the one added first. */
  readonly #events: Event[] = [];

  /** Calls `run` at `time`. */
  at(time: number, run: () => unknown): { cancel(): void } {
    const event: Event = { time: Math.max(time, this.now), run };
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle] as Event).time > event.time) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
    return {
      cancel: () => {
        event.run = undefined;
      },
    };
  }

  /** Runs all events before `end`, each after the work of the previous one is done. */
  async runUntil(end: number): Promise<void> {
    for (let next = this.#events.at(-1); next !== undefined && next.time < end; next = this.#events.at(-1)) {
      this.#events.pop();
      if (next.run === undefined) continue;
      this.now = next.time;
      if (next.run() !== false) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    this.now = end;
  }
}
