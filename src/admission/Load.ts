import { performance } from 'node:perf_hooks';

/** A shorter time tells little. */
const leastMs = 100;

/** How busy the process was of late, as Node.js and the system measure it when it is asked for. */
export class Load {
  #latest = { utilization: 0, ranShare: 1 };
  #loop = performance.eventLoopUtilization();
  #cpu = process.cpuUsage();
  #at = performance.now();

  /**
   * Since the last measurement, or that one when it is less than 100 ms ago. `utilization`: of the event loop, from 0 to 1.
   * `ranShare`: in how much of the event loop's active time the process had the CPU, from 0 to 1.
   */
  measure(): { readonly utilization: number; readonly ranShare: number } {
    const now = performance.now();
    if (now - this.#at < leastMs) return this.#latest;
    const { utilization, active } = performance.eventLoopUtilization(this.#loop); // `active` in milliseconds
    const { user, system } = process.cpuUsage(this.#cpu); // in microseconds
    this.#latest = { utilization, ranShare: active === 0 ? 1 : Math.min(1, (user + system) / 1000 / active) };
    this.#loop = performance.eventLoopUtilization();
    this.#cpu = process.cpuUsage();
    this.#at = now;
    return this.#latest;
  }
}
