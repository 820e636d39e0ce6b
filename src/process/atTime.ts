import { longestTimerMs } from './pause.js';

/** Runs `action` once at `time` (epoch milliseconds, `Infinity` for never); returns what cancels it. */
export function atTime(time: number, action: () => void): () => void {
  if (time === Number.POSITIVE_INFINITY) return () => {};
  let timer: NodeJS.Timeout | undefined;
  const wait = () => {
    const leftMs = time - Date.now();
    timer = leftMs <= 0 ? setTimeout(action, 0) : setTimeout(wait, Math.min(leftMs, longestTimerMs));
  };
  wait();
  return () => clearTimeout(timer);
}
