import { randomBytes, randomUUID } from 'node:crypto';
import { pause as pauseFor } from './pause.js';

/**
 * Clocks, timers and random numbers. All code that reads and writes at the service takes them from here only, so that a test
 * or a simulation can control them. The functions do not use `this`.
 */
export interface Runtime {
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Milliseconds of a clock that only moves forward. */
  readonly monotonicNow: () => number;
  readonly setTimeout: (run: () => void, ms: number) => Timer;
  readonly setInterval: (run: () => void, ms: number) => Timer;
  /** Clears a timeout or an interval; does nothing for undefined. */
  readonly clearTimer: (timer: Timer | undefined) => void;
  /** Runs after pending I/O. */
  readonly setImmediate: (run: () => void) => void;
  /** From 0 to 1, 1 excluded. */
  readonly random: () => number;
  readonly randomUUID: () => string;
  readonly randomBytes: (count: number) => Buffer;
}

export interface Timer {
  /** From now on it does not keep the process alive. */
  unref(): this;
}

export const realRuntime: Runtime = {
  now: () => Date.now(),
  monotonicNow: () => performance.now(),
  setTimeout: (run, ms) => setTimeout(run, ms),
  setInterval: (run, ms) => setInterval(run, ms),
  clearTimer: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  setImmediate: (run) => void setImmediate(run),
  random: () => Math.random(),
  randomUUID: () => randomUUID(),
  randomBytes: (count) => randomBytes(count),
};

interface PauseOptions {
  readonly signal?: AbortSignal | undefined;
  readonly ref?: boolean;
}

export function pause(_: Runtime, ms: number, options: PauseOptions = {}): Promise<void> {
  return pauseFor(ms, options);
}
