// Virtual time, which passes only from one event to the next. Timers are events too.

import { setImmediate } from 'node:timers';
import { replacePlatform } from './platform.js';

/** An event queue in place of a clock. */
export class VirtualTime {
  /** Epoch milliseconds. */
  now;
  #startsAt;
  /** A binary heap, ordered by time, then by insertion. */
  #heap = [];
  #order = 0;

  constructor(startsAt) {
    this.now = startsAt;
    this.#startsAt = startsAt;
  }

  /** Makes this time the platform's, until `restorePlatform()`. `chance` may have its random numbers. */
  install(chance) {
    const own = {
      ...chance,
      now: () => this.now,
      monotonicNow: () => this.now - this.#startsAt,
      setTimeout: (run, ms = 0) => this.at(this.now + Math.max(0, ms), run),
      setInterval: (run, ms = 0) => this.#repeat(run, Math.max(1, ms)),
    };
    replacePlatform(() => own);
  }

  /** Calls `run` at `time`. It returns false when it left no asynchronous work that the next event must wait for. */
  at(time, run) {
    const timer = new Timer(Math.max(time, this.now), this.#order++, run);
    this.#push(timer);
    return timer;
  }

  /** Runs all events before `end`, each after the work of the previous one is done. */
  async runUntil(end) {
    while (this.#heap.length > 0 && this.#heap[0].time < end) {
      const { time, run } = this.#pop();
      if (run === undefined) continue;
      this.now = time;
      if (run() !== false) await new Promise(setImmediate);
    }
    this.now = end;
  }

  #repeat(run, ms) {
    const timer = this.at(this.now + ms, () => {
      timer.again = this.#repeat(run, ms);
      run();
    });
    return timer;
  }

  #push(timer) {
    const heap = this.#heap;
    let at = heap.push(timer) - 1;
    for (let parent = (at - 1) >> 1; at > 0 && isBefore(timer, heap[parent]); parent = (at - 1) >> 1) {
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = timer;
  }

  #pop() {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (heap.length === 0) return first;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child += 1;
      if (!isBefore(heap[child], last)) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

class Timer {
  constructor(time, order, run) {
    this.time = time;
    this.order = order;
    this.run = run;
  }

  cancel() {
    this.run = undefined;
    this.again?.cancel();
  }

  unref() {
    return this;
  }
}

const isBefore = (one, other) => one.time < other.time || (one.time === other.time && one.order < other.order);
