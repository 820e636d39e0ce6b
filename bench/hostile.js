// npm run bench:hostile: twenty honest callers beside one hostile one, on a gateway with a small heap. Runs the attacks one by
// one, then all at once; reports what the honest callers noticed, and the memory afterwards.

import { setTimeout as delay } from 'node:timers/promises';
import { outcomeOf } from './caller.js';
import { attacks } from './hostile/attacks.js';
import { startWorld } from './hostile/world.js';
import { residentMegabytes } from './measure.js';
import { optionsOf } from './optionsOf.js';
import { withStarted } from './processes.js';
import { machine, table } from './report.js';

const known = Object.keys(attacks);
const help = `One hostile caller beside twenty honest ones: npm run bench:hostile -- [options]

  --attack <name>  only this one; may be repeated. Names: ${known.join('; ')}
  --quick          a few seconds for each attack
  --help

Exits with 1 if the gateway ended or an honest caller was refused.
`;
const values = optionsOf(help, {
  attack: { type: 'string', multiple: true, default: known, among: known },
  quick: { type: 'boolean' },
});
const names = values.attack;
const seconds = values.quick
  ? { warmUp: 1, alone: 3, each: 3, all: 6, rest: 5 }
  : { warmUp: 5, alone: 20, each: 20, all: 120, rest: 60 };

await withStarted(async (start) => {
  const { gateway, honest, attack } = await startWorld(start);
  const rows = [];
  const phase = async (name, work) => {
    if (gateway.hasEnded()) return;
    process.stderr.write(`${name}…\n`);
    honest.answers();
    await work();
    const outcome = outcomeOf(honest.answers());
    const megabytes = gateway.hasEnded() ? Number.NaN : residentMegabytes(gateway.pid);
    rows.push({ name, ...outcome, megabytes });
  };
  // Warms up with every attack, one by one and together: before anything is compared, code is compiled and bounded caches are
  // full.
  for (const name of names) await attack([name], seconds.warmUp);
  await attack(names, 4 * seconds.warmUp);
  await delay(4 * seconds.warmUp * 1000);
  await phase('alone', () => delay(seconds.alone * 1000));
  for (const name of names) await phase(name, () => attack([name], seconds.each));
  if (names.length > 1) await phase('all at once', () => attack(names, seconds.all));
  await phase('after a rest', () => delay(seconds.rest * 1000));
  process.stdout.write(`\nMeasured on ${machine()}.\n\n${tableOf(rows)}`);
  if (gateway.hasEnded()) process.stdout.write('The gateway ended.\n');
  if (gateway.hasEnded() || rows.some(({ failed }) => failed > 0)) process.exitCode = 1;
});

function tableOf(rows) {
  const cells = rows.map(({ name, requests, failed, p50, p99, megabytes }) => {
    const ratio = `${(p99 / rows[0].p99).toFixed(2)}x`;
    return [name, requests, failed, p50.toFixed(1), p99.toFixed(1), ratio, Math.round(megabytes)];
  });
  const columns = ['hostile caller', 'honest requests', 'failed', 'p50 ms', 'p99 ms', 'to alone', 'RSS MB after'];
  return table(columns, cells);
}
