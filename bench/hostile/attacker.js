// The hostile caller, a process of its own: runs the attacks that it is sent, for the given time.

import { setPriority } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { attacks, hangUp } from './attacks.js';

/** How long an attack that still awaits an answer may run over its time. */
const graceSeconds = 3;

setPriority(19); // it shares cores with the honest callers, whose measured latencies must not include waits for it

process.on('message', async ({ names, target, seconds }) => {
  const over = AbortSignal.timeout(seconds * 1000);
  const attacking = Promise.all(names.map((name) => attacks[name](target, over)));
  await Promise.race([attacking, delay((seconds + graceSeconds) * 1000)]);
  hangUp();
  process.send('over');
});
process.on('disconnect', () => process.exit());
