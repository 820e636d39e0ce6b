import { randomBytes, randomUUID } from 'node:crypto';

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

/** The longest a timer of Node.js can be, in milliseconds; longer ones fire at once. */
export const longestTimerMs = 2_147_483_647;

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
  /** Ends the pause early when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Whether it keeps the process alive. Default true. */
  readonly ref?: boolean;
}

/** Resolves after `ms` milliseconds. Never rejects. */
export function pause(runtime: Runtime, ms: number, { signal, ref = true }: PauseOptions = {}): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      runtime.clearTimer(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = runtime.setTimeout(end, ms);
    if (!ref) timer.unref();
    signal?.addEventListener('abort', end);
  });
}
