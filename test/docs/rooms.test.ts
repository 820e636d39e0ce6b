import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

const script = fileURLToPath(new URL('../../scripts/rooms.js', import.meta.url));
/** Rooms of which none has more than its share of the lines. */
const sound: Readonly<Record<string, string>> = {
  'main.ts': "import { a } from './resolvers/a.js';\nimport { b } from './cache/b.js';\n",
  'resolvers/a.ts': "import type { Schema } from '../schema/Schema.js';\n",
  'schema/Schema.ts': 'export type Schema = never;\n',
  'cache/b.ts': "import { key } from '../config/key.js';\n",
  'config/key.ts': 'export const key = 1;\n',
  'http/c.ts': "const lazy = () => import('../live/d.js');\n",
  'live/d.ts': 'export const d = 1;\n',
  'auth/e.ts': 'export const e = 1;\n',
};

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rooms-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function check(changes: Readonly<Record<string, string>>) {
  for (const [path, text] of Object.entries({ ...sound, ...changes })) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  const { status, stdout } = spawnSync(process.execPath, [script, '--check', directory], { encoding: 'utf8' });
  return { status, problems: stdout.split('\n').filter((line) => line !== '' && !line.startsWith(' ')) };
}

const lines = (count: number) => 'const line = 1;\n'.repeat(count);
const elsewhere = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`room${n}/f.ts`, lines(2700)]));

describe('The check of the rooms', () => {
  it('finds nothing in sound ones', () => {
    expect(check({})).toEqual({ status: 0, problems: ['No breach, no cycle.'] });
  });

  it.each([
    ['a type of the schema', { 'cache/b.ts': "import type { Schema } from '../schema/Schema.js';\n" }],
    ['the context', { 'http/c.ts': "export { context } from '../context.js';\n", 'context.ts': lines(1) }],
    ['a resolver when it is needed', { 'live/d.ts': "const lazy = () => import('../resolvers/a.js');\n" }],
  ])('finds an engine that imports %s', (_, changes) => {
    const { status, problems } = check(changes);
    expect(status).toBe(1);
    expect(problems).toEqual([expect.stringMatching(/^The engine imports the domain: /)]);
  });

  it('finds a cycle, also one of types', () => {
    const { status, problems } = check({ 'config/key.ts': "import type {\n  B,\n} from '../cache/b.js';\n" });
    expect(status).toBe(1);
    expect(problems).toContainEqual(
      expect.stringMatching(/^Import cycle: .*(b.ts → .*key.ts → .*b.ts|key.ts → .*b.ts → .*key.ts)$/),
    );
  });

  it.each([
    ['six loose files', Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`loose${n}.ts`, ''])), /^6 loose files in src/],
    ['a room that is too large', { 'auth/e.ts': lines(3) }, /^auth has 27\.3 % of the lines: at most 16 %$/],
    ['too many lines', elsewhere, /^\d+ hand-written lines: at most [\d ]+$/],
  ])('finds %s', (_, changes, problem) => {
    const { status, problems } = check(changes);
    expect({ status, problems }).toEqual({ status: 1, problems: [expect.stringMatching(problem)] });
  });
});
