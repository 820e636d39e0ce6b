import { performance } from 'node:perf_hooks';

const measureEveryMs = 500;

/** How busy the process was in the last half second, as Node.js and the system measure it. */
export class Load {
  /** Utilization of the event loop, from 0 to 1. */
  utilization = 0;
  /** Share of the event loop's active time in which the process had the CPU, from 0 to 1. */
  ranShare = 1;
  #loop = performance.eventLoopUtilization();
  #cpu = process.cpuUsage();
  readonly #timer = setInterval(() => this.#measure(), measureEveryMs).unref();

  stop(): void {
    clearInterval(this.#timer);
  }

  #measure(): void {
    const { utilization, active } = performance.eventLoopUtilization(this.#loop); // `active` in milliseconds
    const { user, system } = process.cpuUsage(this.#cpu); // in microseconds
    this.utilization = utilization;
    this.ranShare = active === 0 ? 1 : Math.min(1, (user + system) / 1000 / active);
    this.#loop = performance.eventLoopUtilization();
    this.#cpu = process.cpuUsage();
  }
}
