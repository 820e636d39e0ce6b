// What a gateway holds in memory after a collection: its heap and what is outside of it. A moment later there would be garbage
// again.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const collectOnSignal = `data:text/javascript,${encodeURIComponent(`
  import { renameSync, writeFileSync } from 'node:fs';
  process.on('SIGUSR2', () => {
    globalThis.gc();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync('held.new', String(heapUsed + external));
    renameSync('held.new', 'held');
  });
`)}`;

/** For the start of a gateway that {@link heldMegabytes} is asked of. */
export const collectingFlags = ['--expose-gc', '--import', collectOnSignal];

/** NaN when the gateway has ended. */
export async function heldMegabytes({ pid, directory }, hasEnded) {
  const held = join(directory, 'held');
  rmSync(held, { force: true });
  if (!hasEnded()) process.kill(pid, 'SIGUSR2');
  while (!hasEnded() && !existsSync(held)) await delay(50);
  return hasEnded() ? Number.NaN : Number(readFileSync(held, 'utf8')) / 1e6;
}
