// Time that passes only while events are run. Timers of the gateway's classes are events as well.

import { syncBuiltinESMExports } from 'node:module';
import promises from 'node:timers/promises';

/** An event queue in place of the clock and the timers of this thread, from the moment it is created. */
export class VirtualTime {
  /** Epoch milliseconds. */
  now;
  /** A binary heap by time, then by order of arrival. */
  #heap = [];
  #order = 0;

  constructor(startsAt) {
    this.now = startsAt;
    const set = (run, ms = 0, ...args) => this.at(this.now + Math.max(0, ms), () => run(...args));
    globalThis.setTimeout = set;
    globalThis.setInterval = (run, ms, ...args) => this.#repeat(() => run(...args), Math.max(1, ms));
    globalThis.clearTimeout = globalThis.clearInterval = (timer) => timer?.cancel();
    performance.now = () => this.now - startsAt;
    promises.setTimeout = (ms, value) => new Promise((resolve) => set(resolve, ms, value));
    syncBuiltinESMExports();
  }

  /** Runs `run` at `time`. When it returns false it left no work that the next event has to wait for. */
  at(time, run) {
    const timer = new Timer(Math.max(time, this.now), this.#order++, run);
    this.#push(timer);
    return timer;
  }

  /** Runs all events before `end`, each when the work of the one before is done. */
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

/** What `setTimeout` of Node.js returns, as far as it is used. */
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
