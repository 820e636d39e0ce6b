// Checks the licences of what ships: every package of the lock file that is not for development alone (part of npm run check).

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { orSentence } from './orSentence.js';
import { readArguments } from './readArguments.js';

const help = `Usage: node scripts/licences.js [lock file]

Fails when a package that ships has a licence which is not on the list of this script.`;

const allowed = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
]);

const [named] = readArguments(help, { allowPositionals: true }).positionals;
await orSentence(async () => {
  const lockFile = named ?? fileURLToPath(new URL('../package-lock.json', import.meta.url));
  const { packages } = JSON.parse(await readFile(lockFile, 'utf8'));
  const shipped = Object.entries(packages)
    .filter(([path, { dev, link }]) => path.includes('node_modules/') && !dev && !link)
    .map(([path, { license = 'none' }]) => ({ name: path.split('node_modules/').at(-1), license }));
  const problems = shipped
    .filter(({ license }) => !isAllowed(license))
    .map(({ name, license }) => `${name} ships under ${license}, which is not on the list of scripts/licences.js.`);
  if (problems.length > 0) throw new Error(problems.join('\n'));
  console.log(`${shipped.length} packages ship, under licences of the list.`);
});

/** Of an SPDX expression: each part of an AND, or one of an OR. Parentheses may stand around the whole. */
function isAllowed(expression) {
  const plain = expression.replace(/^\((.*)\)$/, '$1');
  if (plain.includes('(')) return false;
  return plain.split(' OR ').some((choice) => choice.split(' AND ').every((id) => allowed.has(id.trim())));
}
