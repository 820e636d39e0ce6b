import { readFileSync } from 'node:fs';

/** A file of this repository, in whose root the tests run. */
export const read = (path: string) => readFileSync(path, 'utf8');

/** The blocks of code of a page. */
export function codeBlocks(page: string) {
  return [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({ language, text }));
}
