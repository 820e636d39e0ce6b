import { StoreError } from './StoreError.js';

/**
 * Runs `work` and rejects with a `timed-out` {@link StoreError} when it takes longer than `limitMs`. The work itself is
 * not stopped; its late answer, good or bad, is dropped.
 *
 * A process that was too busy to look at its sockets must not blame the store: timers run before I/O in the event loop,
 * so an answer may be waiting right behind an expired timer. Hence a timer that fires very late grants one more limit,
 * and the verdict falls only after one round of I/O.
 */
export function timeLimit<T>(work: () => Promise<T>, limitMs: number): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const dueAt = performance.now() + limitMs;
    const giveUp = () => setImmediate(() => reject(new StoreError('timed-out')));
    let timer = setTimeout(() => {
      if (performance.now() - dueAt <= limitMs / 5) giveUp();
      else timer = setTimeout(giveUp, limitMs);
    }, limitMs);
    const end = () => clearTimeout(timer);
    work().finally(end).then(resolve, reject);
  });
}
