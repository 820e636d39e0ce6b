/** Resolves after `ms` milliseconds, or when the signal aborts. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}

let ending: Promise<void> | undefined;

/** Resolves at the end of this turn of the event loop, when everything that has arrived was handled. */
export function endOfTurn(): Promise<void> {
  ending ??= new Promise((resolve) => {
    setImmediate(() => {
      ending = undefined;
      resolve();
    });
  });
  return ending;
}

/** The last part of a time limit, in milliseconds. */
const lastMs = 250;

/**
 * Calls `giveUp` when I/O has taken longer than `ms`; returns what cancels it. Timers run before I/O, so a process that stood
 * still would give up before it reads what has arrived meanwhile: the last part of the time begins when it runs again.
 */
export function giveUpAfter(ms: number, giveUp: () => void): () => void {
  const last = Math.min(ms, lastMs);
  let timer: NodeJS.Timeout | undefined = setTimeout(() => {
    timer = setTimeout(() => setImmediate(() => timer && giveUp()), last); // after I/O: it may have stood still in this part
  }, ms - last);
  return () => {
    clearTimeout(timer);
    timer = undefined;
  };
}

/** Rejects with the error of `late` when `work` takes longer than `ms`, as {@link giveUpAfter} counts. The work goes on. */
export function inTime<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = giveUpAfter(ms, () => reject(late()));
    work.finally(end).then(resolve, reject);
  });
}

/** How often a time is looked at, in milliseconds: timers do not run while a machine sleeps, and its clock may be set. */
const lookEveryMs = 60_000;

/** Runs `action` once at `time` (epoch milliseconds, `Infinity` for never); returns what cancels it. */
export function atTime(time: number, action: () => void): () => void {
  if (time === Infinity) return () => {};
  let timer: NodeJS.Timeout | undefined;
  const wait = () => {
    const leftMs = time - Date.now();
    timer = leftMs <= 0 ? setTimeout(action, 0) : setTimeout(wait, Math.min(leftMs, lookEveryMs));
  };
  wait();
  return () => clearTimeout(timer);
}
