// The hostile caller, a process of its own: runs the attacks it is told to, for as long as it is told to.

import { setPriority } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { attacks, hangUp } from './attacks.js';

/** An attack that waits for an answer is not waited for longer than this. */
const graceSeconds = 3;

setPriority(19); // it shares a core with the honest callers, whose clocks must not wait for it

process.on('message', async ({ names, target, seconds }) => {
  const over = AbortSignal.timeout(seconds * 1000);
  const attacking = Promise.all(names.map((name) => attacks[name](target, over)));
  const counts = await Promise.race([attacking, delay((seconds + graceSeconds) * 1000, [])]);
  hangUp();
  process.send({ refused: counts.reduce((sum, count) => sum + (count ?? 0), 0) });
});
process.on('disconnect', () => process.exit());
