// npm run bench:hostile: twenty honest callers beside one hostile one, on a gateway with a small heap. Runs the attacks one by
// one, then all at once; reports what the honest callers noticed, and the memory held afterwards.

import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { attacks } from './hostile/attacks.js';
import { startWorld } from './hostile/world.js';
import { machine, table } from './report.js';

const help = `One hostile caller beside twenty honest ones: npm run bench:hostile -- [options]

  --attack <name>  only this one; may be repeated. Names: ${Object.keys(attacks).join('; ')}
  --quick          a few seconds for each attack
  --help

Ends with 1 when the gateway ended, or an honest caller was refused.
`;

const { values } = parseArgs({
  options: {
    attack: { type: 'string', multiple: true },
    quick: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});
const names = values.attack ?? Object.keys(attacks);
const seconds = values.quick
  ? { warmUp: 1, alone: 3, each: 3, all: 6, rest: 5 }
  : { warmUp: 5, alone: 20, each: 20, all: 120, rest: 60 };

if (values.help) process.stdout.write(help);
else await run();

async function run() {
  const unknown = names.find((name) => !Object.hasOwn(attacks, name));
  if (unknown !== undefined) throw new Error(`--attack ${unknown} is not known: see --help`);
  const world = await startWorld();
  const rows = [];
  let alone;
  const phase = async (name, work) => {
    if (world.hasEnded()) return;
    process.stdout.write(`${name}… `);
    world.honest.phase();
    const [startedAt, linesBefore] = [performance.now(), world.logLines()];
    const refused = await work();
    const perSecond = (count) => (count / (performance.now() - startedAt)) * 1000;
    const { requests, failed, firstFailure, p50Ms, p99Ms } = world.honest.phase();
    alone ??= p99Ms;
    if (firstFailure !== undefined) process.stderr.write(`\nThe first failure of "${name}": ${firstFailure}\n`);
    const rates = {
      refusedPerSecond: perSecond(refused ?? 0),
      linesPerSecond: perSecond(world.logLines() - linesBefore),
    };
    const megabytes = await world.megabytes();
    rows.push({ name, requests, failed, p50Ms, p99Ms, ratio: p99Ms / alone, megabytes, ...rates });
    process.stdout.write(`p99 ${p99Ms.toFixed(1)} ms, ${failed} failed\n`);
  };
  try {
    // Warms up with every attack, one by one and together: before anything is compared, code is compiled and bounded caches
    // are full.
    for (const name of names) await attacked(world, [name], seconds.warmUp);
    await attacked(world, names, 4 * seconds.warmUp);
    await delay(4 * seconds.warmUp * 1000);
    await phase('alone', () => delay(seconds.alone * 1000));
    for (const name of names) await phase(name, () => attacked(world, [name], seconds.each));
    if (names.length > 1) await phase('all at once', () => attacked(world, names, seconds.all));
    await phase('a minute later', () => delay(seconds.rest * 1000));
    await report(rows, world);
  } finally {
    await world.stop();
  }
}

async function attacked(world, attacking, forSeconds) {
  world.stallLog(attacking.includes('log lines'));
  const refused = await world.attack(attacking, forSeconds);
  world.stallLog(false);
  return refused;
}

async function report(rows, world) {
  const cells = rows.map(({ name, requests, failed, p50Ms, p99Ms, ratio, megabytes, ...rates }) => [
    ...[name, requests, failed, p50Ms.toFixed(1), p99Ms.toFixed(1), `${ratio.toFixed(2)}x`, Math.round(megabytes)],
    ...[rates.linesPerSecond.toFixed(1), rates.refusedPerSecond > 0 ? Math.round(rates.refusedPerSecond) : ''],
  ]);
  const columns = [
    ...['hostile caller', 'honest requests', 'failed', 'p50 ms', 'p99 ms', 'to alone', 'MB held after'],
    ...['log lines/s', 'refused/s'],
  ];
  process.stdout.write(`\nMeasured on ${machine()}.\n\n${table(columns, cells)}`);
  const failed = rows.reduce((sum, row) => sum + row.failed, 0);
  if (!world.hasEnded() && failed === 0) return;
  process.stdout.write(world.hasEnded() ? 'The gateway ended.\n' : `${failed} requests of honest callers failed.\n`);
  process.exitCode = 1;
}
