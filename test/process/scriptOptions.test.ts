import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';
import { run } from '../../scripts/run.js';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'options-'));
afterAll(() => rmSync(folder, { recursive: true }));
/** Nothing is found there, and nothing is installed. */
const emptyPath = { PATH: '/nowhere' };
const script = (name: string, ...args: readonly string[]) => {
  const env = name === 'test' ? emptyPath : process.env;
  return run(process.execPath, [here(`../../scripts/${name}.js`), ...args], { cwd: folder, env });
};

const strict = [
  ...['build', 'check', 'compose', 'docs', 'licences'],
  ...['pack', 'rooms', 'sbom', 'schema', 'timeAndChance'],
];

describe.each([...strict, 'test', 'testNode'])('scripts/%s.js', (name) => {
  it('explains itself and does nothing else', async () => {
    expect(await script(name, '--help')).toEqual({ code: 0, output: expect.stringMatching(/^Usage: n/) });
    expect(readdirSync(folder)).toEqual([]);
  });
});

it.each(strict)('scripts/%s.js refuses an option that it does not have, in one line', async (name) => {
  expect(await script(name, '--fast')).toEqual({ code: 2, output: "Unknown option '--fast'. See --help." });
});

describe('npm test', () => {
  it('names a path that is no program', async () => {
    const env = { ...emptyPath, REDIS_SERVER_PATH: '/nowhere/redis' };
    const output = 'REDIS_SERVER_PATH names /nowhere/redis, which is no executable file.';
    expect(await run(process.execPath, [here('../../scripts/test.js')], { env })).toEqual({ code: 1, output });
  });
});
