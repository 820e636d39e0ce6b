import { setTimeout as sleep } from 'node:timers/promises';

/** Polls `check` every 20 ms: for states of other processes that emit no event. */
export async function until(check: () => Promise<boolean> | boolean, timeoutMs = 15_000): Promise<void> {
  const giveUpAt = performance.now() + timeoutMs;
  while (!(await check())) {
    if (performance.now() > giveUpAt) throw new Error(`not so within ${timeoutMs} ms: ${check}`);
    await sleep(20);
  }
}
