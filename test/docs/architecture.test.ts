import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}docs/architecture.md`, 'utf8');
const maxSteps = 12;

/** The numbered items under a heading, up to the next heading; an item may go on in further lines. */
function itemsUnder(heading: string): string[] {
  const [, after = ''] = page.split(`\n${heading}\n`);
  const [section = ''] = after.split(/^#/m);
  return section.match(/^\d+\. .*(?:\n {2,}\S.*)*/gm) ?? [];
}

/** What is wrong with an item of the form "1. `src/path/File.ts`: `Class.method` – text"; undefined when nothing is. */
function problemOf(item: string): string | undefined {
  const [, path, name] = /^\d+\. `(src\/[\w./-]+\.ts)`: `([\w#.]+)(?:\(\))?` [–—-] \S/.exec(item) ?? [];
  if (path === undefined || name === undefined) return `expected "1. \`src/path/File.ts\`: \`name\` – text": ${item}`;
  if (!existsSync(root + path)) return `${path} does not exist`;
  const source = readFileSync(root + path, 'utf8');
  const [method = '', owner] = name.split('.').reverse();
  if (owner !== undefined && !new RegExp(`^(?:export )?(?:abstract )?class ${owner}\\b`, 'm').test(source)) {
    return `${path} declares no class ${owner}`;
  }
  const isDeclared = declaresMember(source, method) || (owner === undefined && declaresFunction(source, method));
  return isDeclared ? undefined : `${path} does not declare ${name}`;
}

function declaresFunction(source: string, name: string): boolean {
  return new RegExp(`^(?:export )?(?:(?:async )?function\\*? ${name}[(<]|const ${name}\\b.*=)`, 'm').test(source);
}

/** A method, or a member that is a function. Members are indented once; a call is not, or it ends its line with `;`. */
function declaresMember(source: string, name: string): boolean {
  const words = '(?:(?:private|protected|readonly|static|async|get) )*\\*?';
  return new RegExp(`^ {2}${words}${name}(?:[(<](?!.*;$)| = |: .* = )`, 'm').test(source);
}

describe.each(['### A hot query', '### A cold query', '### A subscription'])('The path of a request: %s', (heading) => {
  it(`has at most ${maxSteps} steps`, () => {
    expect(itemsUnder(heading).length).toBeGreaterThan(0);
    expect(itemsUnder(heading).length).toBeLessThanOrEqual(maxSteps);
  });

  it('names only functions that are where it says', () => {
    expect(itemsUnder(heading).flatMap((item) => problemOf(item) ?? [])).toEqual([]);
  });
});

describe('The check of a step', () => {
  it.each([
    ['a method', '1. `src/context.ts`: `RequestContext.taxpayer` – the door'],
    ['a function', '2. `src/server.ts`: `startGateway` – starts it'],
    ['a member that is a function', '3. `src/observability/Metrics.ts`: `Metrics.onRequest` – counts it'],
  ])('accepts %s', (_, item) => {
    expect(problemOf(item)).toBeUndefined();
  });

  it.each([
    ['a file that is gone', '1. `src/gone.ts`: `gone` – x', 'src/gone.ts does not exist'],
    ['a method that is gone', '1. `src/context.ts`: `RequestContext.gone` – x', 'src/context.ts does not declare'],
    ['a function that is only called', '1. `src/main.ts`: `startGateway` – x', 'src/main.ts does not declare'],
    ['a class that is elsewhere', '1. `src/main.ts`: `RequestContext.taxpayer` – x', 'src/main.ts declares no class'],
    ['an item without a function', '1. `src/context.ts` – x', 'expected "1. `src/path/File.ts`: `name` – text"'],
  ])('refuses %s', (_, item, problem) => {
    expect(problemOf(item)).toContain(problem);
  });
});
