import { performance as counters } from 'node:perf_hooks'; // the types of the global one lack `eventLoopUtilization`

/** Shortest time between two measurements, in milliseconds: a shorter one tells little. */
const leastMs = 100;
/**
 * A higher utilization is multiplied by this after each `leastMs`. It does not end at once, because a flood has short breaks.
 */
const fading = 0.8;

/** How busy the process has been lately, from counters of Node.js and the system that are read only on demand. */
export class Load {
  #latest = { utilization: 0, ranShare: 1 };
  #loop = counters.eventLoopUtilization();
  #cpu = process.cpuUsage();
  #at = performance.now();

  /**
   * Measures the time since the last measurement, and returns that one again when it is less than 100 ms old. `utilization`: of
   * the event loop, from 0 to 1, or what is left of an earlier one. `ranShare`: in what share of the event loop's active time
   * the process had a CPU, from 0 to 1.
   */
  measure(): { readonly utilization: number; readonly ranShare: number } {
    const now = performance.now();
    if (now - this.#at < leastMs) return this.#latest;
    const { utilization, active } = counters.eventLoopUtilization(this.#loop); // `active` in milliseconds
    const { user, system } = process.cpuUsage(this.#cpu); // in microseconds
    const earlier = this.#latest.utilization * fading ** ((now - this.#at) / leastMs);
    const ranShare = active === 0 ? 1 : Math.min(1, (user + system) / 1000 / active);
    this.#latest = { utilization: Math.max(utilization, earlier), ranShare };
    this.#loop = counters.eventLoopUtilization();
    this.#cpu = process.cpuUsage();
    this.#at = now;
    return this.#latest;
  }
}
