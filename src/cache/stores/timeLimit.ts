import { StoreError } from './StoreError.js';

/**
 * Runs `work` and rejects with a `timed-out` {@link StoreError} when it takes longer than `limitMs`. The work itself is
 * not stopped; its late answer, good or bad, is dropped.
 *
 * A process that was too busy to look at its sockets must not blame the store: timers run before I/O in the event loop,
 * so an answer may be waiting right behind an expired timer. Hence a timer that fires very late grants one more limit,
 * and the verdict falls only after one round of I/O.
 */
export function timeLimit<T>(
  work: () => Promise<T>,
  limitMs: number,
  now: () => number = () => performance.now(),
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let dueAt = now() + limitMs;
    let extended = false;
    let timer = setTimeout(onTimer, limitMs);

    function onTimer(): void {
      if (!extended && now() - dueAt > limitMs / 5) {
        extended = true;
        dueAt = now() + limitMs;
        timer = setTimeout(onTimer, limitMs);
        return;
      }
      setImmediate(() => reject(new StoreError('timed-out')));
    }

    work().then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
