import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { allScopes } from '../../src/auth/caller.js';
import { settings } from '../../src/config/settings.js';

const text = readFileSync('docs/security.md', 'utf8');
/** The lines under a heading, up to the next of its rank. */
const section = (heading: string) => text.split(`\n${heading}\n`)[1]?.split(/^##? /m)[0] ?? '';
const rowsOf = (part: string) =>
  part
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2);
const rows = [...rowsOf(section('## Threats and protections')), ...rowsOf(section('### Bounds per caller'))];
const namesIn = (part: string) => [...part.matchAll(/`([A-Z]+_[A-Z_]+)`/g)].map(([, name = '']) => name);

describe('docs/security.md', () => {
  test.each(rows.map((row) => [row.split('|')[1]?.trim(), row]))('%s: the tests it names exist', (_, row = '') => {
    const shown = row.split('|').at(-2) ?? '';
    const references = [...shown.matchAll(/`(test\/[^`]+)`(?:: ([^;`]+))?/g)];
    expect(references.length).toBeGreaterThan(0);
    for (const [, file = '', name] of references) {
      expect(existsSync(file)).toBe(true);
      const titles = name?.trim().replace(/, `$|,$/, '');
      if (titles) expect(readFileSync(file, 'utf8')).toContain(titles);
    }
  });

  test('covers the whole of the OWASP API list', () => {
    for (let item = 1; item <= 10; item += 1) expect(text).toContain(`(API${item}:2023)`);
  });

  test('names each bound of the settings once, with what happens beyond it', () => {
    const isBound = /^MAX_|LIMIT|BUDGET|_MAX_|_TTL_|_TIMEOUT_|_DEADLINE_|BREAKER/;
    const bounds = Object.keys(settings).filter((name) => isBound.test(name));
    const [table = ''] = section('## Limits').split('### ');
    const named = rowsOf(table).flatMap((row) => namesIn(row.split('|')[1] ?? ''));
    expect(named.sort()).toEqual(bounds.sort());
  });

  test('names each secret among the keys, each address that is called, each mode and each scope', () => {
    const all = Object.entries(settings).map(([name, { secret }]) => ({ name, secret }));
    const secrets = all.filter(({ secret }) => secret).map(({ name }) => name);
    expect(namesIn(section('## Keys'))).toEqual(expect.arrayContaining(secrets));
    const isCalled = (name: string) => /_(URL|ENDPOINT)$|^CALLBACK_/.test(name);
    const addresses = all.map(({ name }) => name).filter(isCalled);
    expect(namesIn(section('## What it talks to'))).toEqual(expect.arrayContaining(addresses));
    for (const mode of ['jwt', 'developer', 'disabled'])
      expect(section('## Who is let in')).toContain(`AUTH_MODE=${mode}`);
    for (const scope of allScopes) expect(section('## Who may see what')).toContain(`| \`${scope}\` |`);
    expect(rowsOf(section('## Data')).length).toBeGreaterThan(3);
  });

  test('SECURITY.md says how fast a weakness is mended, also one of a dependency', () => {
    const policy = readFileSync('SECURITY.md', 'utf8');
    expect(rowsOf(policy).map((row) => /\d+ days/.test(row))).toEqual([true, true, true]);
    expect(policy).toMatch(/The same times hold for a weakness of a dependency/);
  });

  test('the settings it names exist', () => {
    const names = namesIn(text).map((name) => name.replace(/_FILE$/, ''));
    const known = ['NODE_EXTRA_CA_CERTS', ...Object.keys(settings).map((name) => name.replace(/_FILE$/, ''))];
    expect(names.filter((name) => !known.includes(name))).toEqual([]);
  });
});
