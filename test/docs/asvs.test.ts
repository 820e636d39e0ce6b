import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';

const text = readFileSync('docs/asvs.md', 'utf8');
const [applies = '', others = ''] = text.split('## What does not apply');
const rows = applies
  .split('\n')
  .filter((line) => /^\| \d/.test(line))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

/** ASVS 5.0.0: how many requirements of levels 1 and 2 each section has. They come first; those of level 3 follow. */
const sections: Readonly<Record<string, number>> = {
  ...{ '1.1': 2, '1.2': 9, '1.3': 11, '1.4': 3, '1.5': 2, '2.1': 3, '2.2': 3, '2.3': 4, '2.4': 1 },
  ...{ '3.2': 2, '3.3': 4, '3.4': 6, '3.5': 5, '3.7': 2, '4.1': 3, '4.2': 1, '4.3': 2, '4.4': 4 },
  ...{ '5.1': 1, '5.2': 3, '5.3': 2, '5.4': 3, '6.1': 3, '6.2': 12, '6.3': 4, '6.4': 4, '6.5': 5, '6.6': 3, '6.8': 4 },
  ...{ '7.1': 3, '7.2': 4, '7.3': 2, '7.4': 5, '7.5': 2, '7.6': 2, '8.1': 2, '8.2': 3, '8.3': 1, '8.4': 1 },
  ...{ '9.1': 3, '9.2': 4, '10.1': 2, '10.2': 2, '10.3': 4, '10.4': 11, '10.5': 5, '10.6': 2, '10.7': 3 },
  ...{ '11.1': 2, '11.2': 3, '11.3': 3, '11.4': 4, '11.5': 1, '11.6': 1, '12.1': 3, '12.2': 2, '12.3': 4 },
  ...{ '13.1': 1, '13.2': 5, '13.3': 2, '13.4': 5, '14.1': 2, '14.2': 4, '14.3': 3, '15.1': 3, '15.2': 3, '15.3': 7 },
  ...{ '16.1': 1, '16.2': 5, '16.3': 4, '16.4': 3, '16.5': 3, '17.1': 1, '17.2': 4, '17.3': 2 },
};
const ofLevel3 = ['10.3.5', '16.5.4']; // and 16.3.2, which is of level 2 as well

describe('docs/asvs.md', () => {
  test('has each of the 253 requirements of levels 1 and 2 once, with a verdict or among those that do not apply', () => {
    const required = Object.entries(sections).flatMap(([section, count]) =>
      Array.from({ length: count }, (_, i) => `${section}.${i + 1}`),
    );
    expect(required).toHaveLength(253);
    const inTable = rows.map(([name = '']) => name.split(' ')[0] ?? '');
    const named = [...others.matchAll(/^\| ([V\d][\d., V]*) \|/gm)].flatMap(([, list = '']) => list.split(', '));
    const covered = named.flatMap((name) => required.filter((id) => `${id}.`.startsWith(`${name.replace(/^V/, '')}.`)));
    const byNumber = (a: string, b: string) => a.localeCompare(b, 'en', { numeric: true });
    expect([...inTable, ...covered].sort(byNumber)).toEqual([...required, ...ofLevel3].sort(byNumber));
    expect(inTable).toEqual([...inTable].sort(byNumber));
  });

  test('gives one of three verdicts, and what is met names its tests', () => {
    const verdicts = rows.map(([name, verdict, words]) => ({ name, verdict, isShown: /`test\//.test(words ?? '') }));
    const isGood = ({ verdict = '', isShown }: (typeof verdicts)[number]) =>
      verdict === 'met' ? isShown : ['operator', 'not met'].includes(verdict);
    expect(verdicts.filter((each) => !isGood(each))).toEqual([]);
  });

  test('names tests, pages and sections that exist', () => {
    const files = [...text.matchAll(/`(test\/[^`]+)`/g)].map(([, file = '']) => file);
    const links = [...text.matchAll(/\]\((?!https:)([^)#]+)/g)].map(([, link = '']) => `docs/${link}`);
    expect([...files, ...links].filter((file) => !existsSync(file))).toEqual([]);
    const headings = readFileSync('docs/security.md', 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('#'));
    const named = new Set([...text.matchAll(/(?<!\*)\*([A-Z][^*]+)\*(?!\*)/g)].map(([, name = '']) => `## ${name}`));
    expect([...named].filter((heading) => !headings.includes(heading))).toEqual([]);
    expect(named.size).toBeGreaterThan(4);
  });
});
