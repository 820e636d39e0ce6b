import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}docs/newcomer.md`, 'utf8');
const run = (...args: readonly string[]) =>
  promisify(execFile)(process.execPath, ['scripts/newcomer.js', ...args], { cwd: root });

describe('npm run newcomer', () => {
  it('explains itself', async () => {
    const { stdout } = await run('--help');
    for (const word of ['Usage: npm run newcomer', '--node', '--only', '--write']) expect(stdout).toContain(word);
  });

  it.each([
    [['--only', 'moon'], '--only expects one of gateway, client, hive, grafbase (found: moon)'],
    [['--node', '18'], 'Which Node.js: expected a version from 20.19 on, such as 24 or 24.9.0 (found: 18)'],
    [['--fast'], "Unknown option '--fast'"],
  ])('refuses %j and says what it expects', async (args, message) => {
    await expect(run(...args)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
  });

  it('follows a path: the client package, from an empty project to its first answer', async () => {
    const { stdout } = await run('--only', 'client', '--node', process.versions.node);
    expect(stdout).toMatch(
      /^\| client \| v[\d.]+ \| `npm install .*`, `node watch.mjs` \| [1-9]\d* packages, \d+ MB \| \d+ \| [\d.]+ \|$/m,
    );
  }, 120_000);

  it('has been run for its page, on two versions of Node.js', () => {
    expect(page).toContain('npm run newcomer -- --write');
    const rows = [...page.matchAll(/^\| (\w+) \| v(\d+)\.[\d.]+ \|/gm)].map(([, name, major]) => `${name} ${major}`);
    for (const row of ['gateway 20', 'gateway 24', 'client 20', 'client 24']) expect(rows).toContain(row);
    for (const row of rows) expect(page).toContain(`- **${row.split(' ')[0]}**`);
  });
});
