import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';

const text = readFileSync('docs/graphql-over-http.md', 'utf8');
const rows = text
  .split('\n')
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter(([, , level]) => /^(MUST|SHOULD)( NOT)?$/.test(level ?? ''))
  .map(([, section = '', level = '', what = '', here = '', shownBy = '']) => ({ section, level, what, here, shownBy }));

describe('docs/graphql-over-http.md', () => {
  test.each(rows)('$section: $what: the tests it names exist', ({ shownBy, here }) => {
    if (shownBy === 'nothing to show') return expect(here).toBe('It is none');
    const references = [...shownBy.matchAll(/`(test\/[^`]+)`: ([^;]+)/g)];
    expect(references.length).toBeGreaterThan(0);
    for (const [, file = '', title = ''] of references) {
      // Of a test, or of a case of it.
      const names = readFileSync(file, 'utf8').match(/(['"`])(?:\\.|(?!\1).)*\1/g) ?? [];
      const isThere = names.some((name) => name.slice(1).startsWith(title.trim()));
      expect([title, isThere]).toEqual([title, true]);
    }
  });

  test('misses no MUST, and no SHOULD without a reason', () => {
    expect(rows.length).toBeGreaterThan(45);
    const missed = rows.filter(({ here }) => here.startsWith('**Not so'));
    expect(missed.map(({ level }) => level)).toEqual(['SHOULD', 'SHOULD']);
    for (const { here } of missed) expect(here.length).toBeGreaterThan(40);
  });

  test('names the audits that the test leaves out', () => {
    const left = /toEqual\(\[('\w{4}', '\w{4}')\]\)/.exec(
      readFileSync('test/http/graphqlOverHttp.test.ts', 'utf8'),
    )?.[1];
    expect(left?.match(/\w{4}/g)?.every((id) => text.includes(`\`${id}\``))).toBe(true);
  });
});
