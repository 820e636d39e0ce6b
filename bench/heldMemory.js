// The memory that a gateway holds right after a garbage collection: used heap and external memory.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const collectOnSignal = `data:text/javascript,${encodeURIComponent(`
  import { renameSync, writeFileSync } from 'node:fs';
  process.on('SIGWINCH', () => {
    globalThis.gc();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync('held.new', String(heapUsed + external));
    renameSync('held.new', 'held');
  });
`)}`;

/** Node.js flags of a gateway that {@link heldMegabytes} can measure. */
export const collectingFlags = ['--expose-gc', '--import', collectOnSignal];

/** Collects garbage in the gateway. @returns the memory it then holds; NaN when the gateway has ended */
export async function heldMegabytes({ pid, directory }, hasEnded) {
  const held = join(directory, 'held');
  rmSync(held, { force: true });
  if (!hasEnded()) process.kill(pid, 'SIGWINCH');
  while (!hasEnded() && !existsSync(held)) await delay(50);
  return hasEnded() ? Number.NaN : Number(readFileSync(held, 'utf8')) / 1e6;
}
