// The rooms of src/ and what they import, read from the imports themselves (npm run rooms).

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readArguments } from './readArguments.js';

const help = `Usage: npm run rooms -- [--check] [directory]

Prints the sizes of the rooms of src/, or of another directory, and what is wrong with their imports. With --check it ends with
1 when a rule of docs/architecture.md is broken.`;

/** The engine knows nothing of taxpayers. */
const engine = ['cache', 'stores', 'upstream', 'operations', 'live', 'http', 'admission'];
const domain = ['schema', 'resolvers', 'datasources', 'context'];
const most = { looseFiles: 5, roomPercent: 16, lines: 21_250 };

const options = { check: { type: 'boolean' } };
const { values, positionals } = readArguments(help, { options, allowPositionals: true });
const src = positionals[0] ?? fileURLToPath(new URL('../src', import.meta.url));

const files = readdirSync(src, { recursive: true })
  .filter((path) => /\.[jt]s$/.test(path))
  .map((path) => {
    const text = readFileSync(join(src, path), 'utf8');
    return { path, room: roomOf(path), lines: text.split('\n').length - 1, imports: importsOf(path, text) };
  });
const loose = files.filter(({ path }) => !/[\\/]/.test(path));
const total = files.reduce((sum, { lines }) => sum + lines, 0);
const rooms = [...new Set(files.filter((file) => !loose.includes(file)).map(({ room }) => room))]
  .map((room) => {
    const lines = files.filter((file) => file.room === room).reduce((sum, file) => sum + file.lines, 0);
    return { room, lines, percent: (100 * lines) / total };
  })
  .sort((one, other) => other.lines - one.lines);

const breaches = files.flatMap(({ path, room, imports }) =>
  engine.includes(room) ? imports.filter((to) => domain.includes(roomOf(to))).map((to) => `${path} → ${to}`) : [],
);
const cycles = findCycles(new Map(files.map(({ path, imports }) => [path, imports])));
const problems = [
  ...breaches.map((breach) => `The engine imports the domain: ${breach}`),
  ...cycles.map((cycle) => `Import cycle: ${cycle.join(' → ')}`),
  ...(loose.length > most.looseFiles ? [`${loose.length} loose files in src: at most ${most.looseFiles}`] : []),
  ...rooms
    .filter(({ percent }) => percent > most.roomPercent)
    .map(({ room, percent }) => `${room} has ${percent.toFixed(1)} % of the lines: at most ${most.roomPercent} %`),
  ...(total > most.lines ? [`${total} hand-written lines: at most ${most.lines}`] : []),
];

for (const { room, lines, percent } of rooms) print(room, lines, percent);
print(
  `loose: ${loose.map(({ path }) => path).join(', ')}`,
  loose.reduce((sum, { lines }) => sum + lines, 0),
);
print('total', total);
console.log(problems.length === 0 ? 'No breach, no cycle.' : problems.join('\n'));
if (values.check && problems.length > 0) process.exitCode = 1;

function print(what, lines, percent) {
  console.log(
    `${String(lines).padStart(6)}  ${percent === undefined ? '      ' : `${percent.toFixed(1).padStart(4)} %`}  ${what}`,
  );
}

/** The folder below src, or for a loose file its name. */
function roomOf(path) {
  return path.split(/[\\/]/)[0].replace(/\.[jt]s$/, '');
}

/** The files of src that a file imports: statically, for types alone, or when first needed. */
function importsOf(path, text) {
  const specifiers = text.matchAll(/(?:^(?:import|export)\b[^'";]*?from |^import |\bimport\()'(\.[^']+)'/gm);
  return [...new Set([...specifiers].map(([, to]) => join(dirname(path), to).replace(/\.js$/, '.ts')))];
}

/** One cycle for each group of files that reach each other. */
function findCycles(graph) {
  const cycles = [];
  const done = new Set();
  const visit = (path, trail) => {
    if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path]);
    if (trail.includes(path) || done.has(path)) return;
    for (const to of graph.get(path) ?? []) visit(to, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return cycles;
}
