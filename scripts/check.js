// Everything that can be wrong without running a test (npm run check). All steps run, whatever the earlier ones say, so
// that one run shows all there is to mend.

import { fileURLToPath } from 'node:url';
import { readArguments } from './readArguments.js';
import { run } from './run.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const tsc = bin('typescript', 'bin/tsc');
const biome = bin('@biomejs/biome', 'bin/biome');
const codegen = 'tools/codegen/node_modules/@graphql-codegen/cli/esm/bin.js';
const withCodegen = ['scripts/providePackages.js', 'tools/codegen', process.execPath, codegen];

const steps = [
  { name: 'types', command: [tsc, '-p', 'tsconfig.test.json'] },
  { name: 'lint and format', command: [biome, 'check', '--error-on-warnings', '.'] },
  { name: 'rooms and imports', command: ['scripts/rooms.js'] },
  { name: 'licences', command: ['scripts/licences.js'] },
  { name: 'time and chance', command: ['scripts/timeAndChance.js'] },
  { name: 'SDL in sync', command: ['scripts/schema.js', '--check'] },
  { name: 'no breaking schema change', command: ['scripts/schema.js', '--breaking'] },
  { name: 'supergraph composes', command: ['scripts/compose.js'] },
  { name: 'generated code in sync', command: [...withCodegen, '--config', 'codegen.yml', '--check'] },
  { name: 'printed docs in sync', command: ['scripts/docs.js', '--check'] },
];

readArguments('Usage: npm run check\n\nRuns the linter, the type checker and all other checks that need no test.');
const failed = [];
for (const { name, command } of steps) {
  const startedAt = performance.now();
  const { code, output } = await run(process.execPath, command, { cwd: root });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'}  ${name} (${seconds} s)`);
  if (code === 0) continue;
  failed.push(name);
  console.log(output.replaceAll(/^/gm, '        '));
}
console.log(failed.length === 0 ? 'All checks passed.' : `Failed: ${failed.join(', ')}.`);
process.exitCode = failed.length === 0 ? 0 : 1;

/** The script behind a package's command, started by this very Node.js: no shell and no npx in between. */
function bin(name, path) {
  return fileURLToPath(new URL(path, import.meta.resolve(`${name}/package.json`)));
}
