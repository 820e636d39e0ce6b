import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

const text = readFileSync('docs/llms.txt', 'utf8');

it('llms.txt has the parts of its format, in their order', () => {
  const [title, summary, note, ...sections] = text.trimEnd().split('\n\n');
  expect(title).toMatch(/^# \S.*$/);
  expect(summary).toMatch(/^> \S.*\.$/);
  expect(note).toMatch(/^\w/);
  const headings = sections.filter((_, index) => index % 2 === 0);
  expect(headings.length).toBeGreaterThan(3);
  for (const heading of headings) expect(heading).toMatch(/^## \S.*$/);
  expect(headings.at(-1)).toBe('## Optional');
  const lines = sections.filter((_, index) => index % 2 === 1).flatMap((list) => list.split('\n'));
  for (const line of lines) expect(line).toMatch(/^- \[[^\]]+\]\([\w/-]+\.md\): \S.*$/);
});

it('llms.txt links every page of docs, once', () => {
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, path = '']) => path);
  const pages = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
  expect(links.sort()).toEqual(pages.sort());
});
