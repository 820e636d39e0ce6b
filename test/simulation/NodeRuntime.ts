import { seeded } from '../support/seeded.js';
import { beginsAt, World } from './World.js';

/** A clock, in milliseconds ahead of the true time, and how fast it runs. */
export interface Clock {
  aheadMs: number;
  readonly rate: number;
}

/** The clock, timers and random numbers of one process. While it is paused, due work waits; when it wakes, timers run first. */
export class NodeRuntime {
  /** In milliseconds since the simulation began. */
  pausedUntil = 0;
  /** A dead process runs nothing any more. */
  isAlive = true;
  /** The timers that will still run. */
  readonly timers = new Set<SimulatedTimer>();
  readonly #random: () => number;
  readonly #bornAt: number;

  constructor(
    private readonly world: World,
    readonly clock: Clock,
    seed: number,
  ) {
    this.#random = seeded(seed);
    this.#bornAt = world.now;
  }

  readonly now = () =>
    Math.floor(beginsAt + this.world.now + this.clock.aheadMs + (this.clock.rate - 1) * this.world.now);
  readonly monotonicNow = () => (this.world.now - this.#bornAt) * this.clock.rate;
  readonly random = () => this.#random();
  readonly getRandomValues = (bytes: Uint8Array) => {
    for (const n of bytes.keys()) bytes[n] = this.#random() * 256;
    return bytes;
  };
  readonly randomUUID = () => {
    const hex = Buffer.from(this.getRandomValues(new Uint8Array(16))).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  readonly setTimeout = (run: () => void, ms = 0) => this.#timer(run, Math.max(1, ms), false);
  readonly setInterval = (run: () => void, ms = 0) => this.#timer(run, Math.max(1, ms), true);
  readonly setImmediate = (run: () => void) => void this.world.after(0.002, () => this.#due(0.002, run));

  /** Runs `work` as this process, until the next event. */
  run<T>(work: () => T): T {
    World.running = this;
    return work();
  }

  /** Delivers something from outside after `ms`, such as an answer or a request. */
  receive(ms: number, run: () => void): void {
    this.world.after(ms, () => this.#due(0.001, run));
  }

  /** Runs `run` now or, when paused, `rank` milliseconds after waking. Returns false when nothing ran now. */
  #due(rank: number, run: () => void): false | undefined {
    if (!this.isAlive) return false;
    const waitMs = this.pausedUntil - this.world.now;
    if (waitMs > 1e-6) {
      this.world.after(waitMs + rank, () => this.#due(rank, run));
      return false;
    }
    this.run(run);
    return undefined;
  }

  #timer(run: () => void, ms: number, repeats: boolean): SimulatedTimer {
    const timer = new SimulatedTimer(this.timers);
    const arm = () => {
      timer.event = this.world.after(ms / this.clock.rate, () =>
        this.#due(0, () => {
          if (timer.isCancelled) return;
          if (repeats) arm();
          else this.timers.delete(timer);
          run();
        }),
      );
    };
    arm();
    return timer;
  }
}

class SimulatedTimer {
  isCancelled = false;
  event: { cancel(): void } | undefined;

  constructor(private readonly all: Set<SimulatedTimer>) {
    all.add(this);
  }

  cancel(): void {
    this.isCancelled = true;
    this.event?.cancel();
    this.all.delete(this);
  }

  unref(): this {
    return this;
  }
}
