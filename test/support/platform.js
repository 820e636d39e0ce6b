// Replaces the platform's clocks, timers and random numbers, so that the source and its libraries run on those of a test.

const { clearTimeout: clearReal } = globalThis;

/** The platform's own clocks. */
export const real = { now: Date.now, monotonicNow: performance.now.bind(performance) };

/** What is replaced, and the name by which a source of time and chance has it. */
const functions = [
  [Date, 'now', 'now'],
  [performance, 'now', 'monotonicNow'],
  [Math, 'random', 'random'],
  [crypto, 'randomUUID', 'randomUUID'],
  [crypto, 'getRandomValues', 'getRandomValues'],
  [globalThis, 'setTimeout', 'setTimeout'],
  [globalThis, 'setInterval', 'setInterval'],
  [globalThis, 'setImmediate', 'setImmediate'],
];

const restorations = [];

/** From now on, each function is that of `current()`, or the platform's where `current()` is undefined or lacks it. */
export function replacePlatform(current) {
  restorePlatform();
  for (const [owner, name, ownName] of functions) {
    const platforms = owner[name];
    put(owner, name, (...args) => (current()?.[ownName] ?? platforms).apply(owner, args));
  }
  const clear = (timer) => (timer?.cancel ? timer.cancel() : clearReal(timer));
  put(globalThis, 'clearTimeout', clear);
  put(globalThis, 'clearInterval', clear);
}

export function restorePlatform() {
  for (const restore of restorations.splice(0)) restore();
}

function put(owner, name, replacement) {
  const platforms = owner[name];
  owner[name] = replacement;
  restorations.push(() => {
    owner[name] = platforms;
  });
}
