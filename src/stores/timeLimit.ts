import { StoreError } from './StoreError.js';

/**
 * Runs `work` and rejects with a `timed-out` {@link StoreError} when it takes longer than `limitMs`. The work goes on; its
 * late answer is dropped. When the timer fires very late, this process was too busy to read an answer that may have arrived:
 * `work` gets the same time once more. Timers run before I/O, so it rejects only after one more round of I/O.
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
