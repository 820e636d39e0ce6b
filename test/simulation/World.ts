import { seeded } from '../support/seeded.js';
import type { NodeRuntime } from './NodeRuntime.js';
import { VirtualTime } from './VirtualTime.js';

/** Monday, 5 January 2026, 10:00 UTC: a full hour, because the budget counts per clock hour. */
export const beginsAt = Date.UTC(2026, 0, 5, 10);

/** What all parts of a simulation share: the virtual time, the random numbers and the trace. */
export class World {
  /** The process that runs now: what the platform tells is from its clocks, timers and random numbers. */
  static running: NodeRuntime | undefined;
  readonly time = new VirtualTime();
  /** What happened, for the timeline. */
  readonly lines: string[] = [];
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seeded(seed ^ 0x5f3759df);
  }

  /** Milliseconds since the simulation began. */
  get now(): number {
    return this.time.now;
  }

  between(from: number, to: number): number {
    return from + this.#random() * (to - from);
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  /** Calls `run` at `time`. It returns false when it left no asynchronous work that the next event must wait for. */
  at(time: number, run: () => unknown) {
    return this.time.at(time, () => {
      World.running = undefined;
      return run();
    });
  }

  after(ms: number, run: () => unknown) {
    return this.at(this.now + ms, run);
  }

  tell(who: string, what: string): void {
    this.lines.push(`${this.now.toFixed(3).padStart(11)} ${who.padEnd(8)} ${what}`);
  }
}
