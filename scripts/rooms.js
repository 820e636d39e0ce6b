// The rules of docs/architecture.md on what the files of src/ import, read from the imports themselves (npm run rooms).

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readArguments } from './readArguments.js';

const help = `Usage: npm run rooms

Prints what is wrong with the imports of src/, and ends with 1 when something is.`;

/** The engine knows nothing of taxpayers. */
const engine = ['cache', 'stores', 'upstream', 'operations', 'live', 'http', 'admission'];
const domain = ['schema', 'resolvers', 'datasources', 'context'];

readArguments(help);
const src = fileURLToPath(new URL('../src', import.meta.url));
const files = readdirSync(src, { recursive: true })
  .filter((path) => /\.[jt]s$/.test(path))
  .map((path) => ({ path, imports: importsOf(path, readFileSync(join(src, path), 'utf8')) }));

const breaches = files.flatMap(({ path, imports }) =>
  engine.includes(roomOf(path))
    ? imports.filter((to) => domain.includes(roomOf(to))).map((to) => `${path} → ${to}`)
    : [],
);
const cycles = findCycles(new Map(files.map(({ path, imports }) => [path, imports])));
const problems = [
  ...breaches.map((breach) => `The engine imports the domain: ${breach}`),
  ...cycles.map((cycle) => `Import cycle: ${cycle.join(' → ')}`),
];
console.log(problems.length === 0 ? 'No breach, no cycle.' : problems.join('\n'));
if (problems.length > 0) process.exitCode = 1;

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
