import { realRuntime } from '../process/Runtime.js';
import { StoreError } from './StoreError.js';

/**
 * Runs `work` and rejects with a `timed-out` {@link StoreError} when it takes longer than `limitMs`. The work goes on; its
 * late answer is dropped. Timers run before I/O: when this process was too busy to read an answer that has arrived, the
 * timer fires very late. It then grants one more limit, and rejects only after a round of I/O.
 */
export function timeLimit<T>(work: () => Promise<T>, limitMs: number, runtime = realRuntime): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const dueAt = runtime.monotonicNow() + limitMs;
    const giveUp = () => runtime.setImmediate(() => reject(new StoreError('timed-out')));
    let timer = runtime.setTimeout(() => {
      if (runtime.monotonicNow() - dueAt <= limitMs / 5) giveUp();
      else timer = runtime.setTimeout(giveUp, limitMs);
    }, limitMs);
    const end = () => runtime.clearTimer(timer);
    work().finally(end).then(resolve, reject);
  });
}
