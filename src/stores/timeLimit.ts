import { realRuntime } from '../process/Runtime.js';
import { StoreError } from './StoreError.js';

/**
 * Runs `work` and rejects with a `timed-out` {@link StoreError} when it takes longer than `limitMs`. The work goes on; its
 * late answer is dropped. When the timer fires very late, this process was too busy to read an answer that may have arrived:
 * `work` gets the same time once more. Timers run before I/O, so it rejects only after one more round of I/O.
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
