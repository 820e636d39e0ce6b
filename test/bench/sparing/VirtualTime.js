// Time that passes only while events are run. Timers are events as well.

/** An event queue in place of a clock. */
export class VirtualTime {
  /** Epoch milliseconds. */
  now;
  #startsAt;
  /** A binary heap by time, then by order of arrival. */
  #heap = [];
  #order = 0;

  constructor(startsAt) {
    this.now = startsAt;
    this.#startsAt = startsAt;
  }

  /** The `Runtime` of all processes that live in this time; what is not time is that of `rest`. */
  runtime(rest) {
    return {
      ...rest,
      now: () => this.now,
      monotonicNow: () => this.now - this.#startsAt,
      setTimeout: (run, ms) => this.at(this.now + Math.max(0, ms), run),
      setInterval: (run, ms) => this.#repeat(run, Math.max(1, ms)),
      clearTimer: (timer) => timer?.cancel(),
    };
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
