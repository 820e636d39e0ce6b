// Changes the code of a room in many small ways and tells which changes no test notices (npm run mutation). Stryker does
// the work; its packages lie in test/mutation, apart from those of the gateway, and are installed at the first run.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { table, writeSection } from '../test/bench/report.js';
import { rooms } from '../test/mutation/rooms.js';
import { orSentence } from './orSentence.js';
import { provideNode } from './provideNode.js';
import { providePackages } from './providePackages.js';
import { readArguments } from './readArguments.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const least = 85;

const help = `Usage: npm run mutation -- [options] [room …]

Mutates the files of each room and runs its tests against every mutant. Rooms: ${Object.keys(rooms).join(', ')} (default: all).
Ends with 1 when tests notice fewer than ${least} % of the mutants of a room.

  --mutate <files>    only these files of the room, separated by commas: src/cache/sealing.ts
  --concurrency <n>   test processes at the same time (default: 1)
  --write             write the figures and the survivors into docs/mutation.md; only of all rooms`;

const options = {
  mutate: { type: 'string' },
  concurrency: { type: 'string', default: '1' },
  write: { type: 'boolean', default: false },
};
const { values, positionals } = readArguments(help, { options, allowPositionals: true }, checkArguments);
await orSentence(() => providePackages('test/mutation'));
// In Node.js 20 and 22, each run of Jest in a process makes every promise of the runs after it dearer.
const node = join(await orSentence(() => provideNode('24')), 'node');
const asked = positionals.length > 0 ? positionals : Object.keys(rooms);
const results = asked.map(mutate);
console.log(tableOf(results));
if (values.write) writeSection('mutation', `${tableOf(results)}\n${survivorsOf(results)}`, 'docs/mutation.md');
process.exitCode = results.every(({ percent }) => percent >= least) ? 0 : 1;

function checkArguments({ values, positionals }) {
  const unknown = positionals.find((room) => !(room in rooms));
  if (unknown !== undefined) throw new Error(`Unknown room '${unknown}': expected ${Object.keys(rooms).join(', ')}`);
  if (!/^[1-9]\d?$/.test(values.concurrency)) throw new Error('--concurrency expects a number from 1 to 99');
  if (values.mutate && positionals.length !== 1) throw new Error('--mutate expects exactly one room');
  if (values.write && positionals.length > 0) throw new Error('--write expects no room: the page shows all of them');
}

function mutate(room) {
  const directory = `${root}test-artifacts/mutation`;
  mkdirSync(directory, { recursive: true });
  const file = `${directory}/${room}.json`;
  const stryker = `${root}test/mutation/node_modules/@stryker-mutator/core/bin/stryker.js`;
  const only = values.mutate ? ['--mutate', values.mutate] : [];
  const env = { ...process.env, MUTATION_ROOM: room, MUTATION_CONCURRENCY: values.concurrency };
  const startedAt = performance.now();
  const run = [stryker, 'run', 'test/mutation/stryker.config.js', ...only];
  const { status } = spawnSync(node, run, { cwd: root, env, stdio: 'inherit' });
  if (status !== 0) process.exit(1);
  return resultOf(room, JSON.parse(readFileSync(file, 'utf8')), (performance.now() - startedAt) / 60_000);
}

function resultOf(room, { files }, minutes) {
  const counts = { Killed: 0, Timeout: 0, Survived: 0, NoCoverage: 0 };
  const survivors = [];
  for (const [path, { source, mutants }] of Object.entries(files)) {
    const lines = source.split('\n');
    for (const { status, location, replacement, mutatorName } of mutants) {
      if (status in counts) counts[status] += 1;
      if (status !== 'Survived' && status !== 'NoCoverage') continue;
      survivors.push({
        path,
        line: location.start.line,
        code: lines[location.start.line - 1].trim(),
        replacement,
        mutatorName,
      });
    }
  }
  const noticed = counts.Killed + counts.Timeout;
  const all = noticed + counts.Survived + counts.NoCoverage;
  return {
    room,
    files: Object.keys(files).length,
    all,
    noticed,
    percent: all && (100 * noticed) / all,
    minutes,
    survivors,
  };
}

function tableOf(rows) {
  const columns = ['room', 'files', 'mutants', 'noticed', 'share', 'minutes'];
  const cells = rows.map(({ room, files, all, noticed, percent, minutes }) => [
    room,
    files,
    all,
    noticed,
    `${percent.toFixed(1)} %`,
    minutes.toFixed(0),
  ]);
  return table(columns, cells);
}

function survivorsOf(rows) {
  const code = (text) =>
    `\`${text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('`', "'").slice(0, 100)}\``;
  const cells = rows.flatMap(({ survivors }) =>
    survivors.map((survivor) => [
      `${survivor.path}:${survivor.line}`,
      code(survivor.code),
      `${survivor.mutatorName}: ${code(survivor.replacement ?? '')}`,
    ]),
  );
  return table(['survivor', 'code', 'mutant'], cells);
}
