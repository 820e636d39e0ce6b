import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8');
const run = (...args: readonly string[]) =>
  promisify(execFile)(process.execPath, ['scripts/testNode.js', ...args], {
    cwd: root,
    env: { ...process.env, NODE_OPTIONS: '' },
  });

describe('npm run test:node', () => {
  it('explains itself', async () => {
    const { stdout } = await run('--help');
    expect(stdout).toContain('Usage: npm run test:node -- <version>');
  });

  it.each([
    [[], 'none'],
    [['18'], '18'],
    [['20.18'], '20.18'],
    [['latest'], 'latest'],
    [['24.x'], '24.x'],
    [['test/http'], 'test/http'],
  ])('refuses %j in one sentence', async (args, found) => {
    const stderr = `Which Node.js: expected a version from 20.19 on, such as 24 or 24.9.0 (found: ${found})\n`;
    await expect(run(...args)).rejects.toMatchObject({ code: 1, stderr });
  });

  it('says in one sentence that there is no such version', async () => {
    await expect(run('99')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/\nnpm has no node-[\w-]+@99: expected a version from 20\.19 on, .*\n$/),
    });
  }, 60_000);

  it('runs the named tests on that version, after -- as well', async () => {
    const version = process.versions.node;
    for (const args of [['test/stores/memoryStore.test.ts'], ['--', 'test/stores/memoryStore.test.ts']]) {
      expect((await run(version, ...args)).stdout).toMatch(/^[1-9]\d* passed, 0 failed\n$/m);
    }
  }, 120_000);
});

describe('CI', () => {
  const [, versions = ''] = /^for version in (.*); do$/m.exec(read('.ci/run')) ?? [];

  it('tests on the oldest Node.js that is supported and on newer ones', () => {
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    expect(`>=${versions.split(' ')[0]}`).toBe(engines.node);
    expect(versions.split(' ')).toEqual(['20.19', '22', '24', '26']);
  });

  it('ends with the counts also when the packages cannot be installed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ci-'));
    try {
      cpSync(`${root}.ci`, join(folder, '.ci'), { recursive: true });
      const ci = promisify(execFile)(join(folder, '.ci/run'));
      const stdout = expect.stringMatching(/^\n== npm ci\n== npm ci failed\n\n0 passed, 1 failed\n$/);
      await expect(ci).rejects.toMatchObject({ code: 1, stdout });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('names tests that exist', () => {
    const named = read('.ci/run').match(/test\/[\w/]+\.test\.ts/g) ?? [];
    for (const path of named) expect({ path, exists: existsSync(root + path) }).toEqual({ path, exists: true });
    for (const what of ['contract', 'plans', 'eventStream', 'webSocket', 'lmdbStore', 'memoryStore', 'warnings']) {
      expect(named.filter((path) => path.includes(what))).toHaveLength(1);
    }
  });
});
