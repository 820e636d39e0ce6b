import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { settings } from '../../src/config/settings.js';

const text = readFileSync('docs/security.md', 'utf8');
const rows = text.split('\n').filter((line) => /^\| .*\(API\d|^\| [A-Z]/.test(line) && !line.endsWith('| Shown by |'));

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

  test('the settings it names exist', () => {
    const names = [...text.matchAll(/`([A-Z]+_[A-Z_]+)`/g)].map(([, name = '']) => name.replace(/_FILE$/, ''));
    const known = Object.keys(settings).map((name) => name.replace(/_FILE$/, ''));
    expect(names.filter((name) => !known.includes(name))).toEqual([]);
  });
});
