/** The longest a timer of Node.js can be, in milliseconds; longer ones fire at once. */
export const longestTimerMs = 2_147_483_647;

interface PauseOptions {
  /** Ends the pause early when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Whether it keeps the process alive. Default true. */
  readonly ref?: boolean;
}

/** Resolves after `ms` milliseconds. Never rejects. */
export function pause(ms: number, { signal, ref = true }: PauseOptions = {}): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (!ref) timer.unref();
    signal?.addEventListener('abort', end);
  });
}

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
