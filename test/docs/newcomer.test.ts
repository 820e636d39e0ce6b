import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { processesIn } from '../support/processesIn.js';
import { until } from '../support/redis.js';

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
    [['--only', 'moon'], 2, '--only expects one of gateway, client, hive, grafbase (found: moon)'],
    [['--node', '18'], 1, 'Which Node.js: expected a version from 20.19 on, such as 24 or 24.9.0 (found: 18)'],
  ])('refuses %j with %d and says what it expects', async (args, code, message) => {
    await expect(run(...args)).rejects.toMatchObject({ code, stderr: expect.stringContaining(message) });
  });

  it('follows a path: the client package, from an empty project to its first answer', async () => {
    const { stdout } = await run('--only', 'client', '--node', process.versions.node);
    expect(stdout).toMatch(
      /^\| client \| v[\d.]+ \| `npm install .*`, `node watch.mjs` \| [1-9]\d* packages, \d+ MB \| \d+ \| [\d.]+ \|$/m,
    );
  }, 120_000);

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'leaves no process and no file behind on %s',
    async (signal) => {
      const folder = mkdtempSync(join(tmpdir(), 'interrupted-'));
      const args = ['scripts/newcomer.js', '--only', 'client', '--node', process.versions.node];
      const child = spawn(process.execPath, args, {
        cwd: root,
        env: { ...process.env, TMPDIR: folder },
        stdio: 'ignore',
      });
      const ended = once(child, 'exit');
      try {
        // The gateway and the installation of the client, in the folder of a newcomer.
        await until(async () => processesIn(folder).length >= 2);
        child.kill(signal);
        expect(await ended).toEqual([130, null]);
        expect(processesIn(folder)).toEqual([]);
        expect(readdirSync(folder)).toEqual([]);
      } finally {
        for (const pid of processesIn(folder)) process.kill(pid, 'SIGKILL');
        rmSync(folder, { recursive: true });
      }
    },
    60_000,
  );

  it('has been run for its page, on two versions of Node.js', () => {
    expect(page).toContain('npm run newcomer -- --write');
    const rows = [...page.matchAll(/^\| (\w+) \| v(\d+)\.[\d.]+ \|/gm)].map(([, name, major]) => `${name} ${major}`);
    for (const row of ['gateway 20', 'gateway 24', 'client 20', 'client 24']) expect(rows).toContain(row);
    for (const row of rows) expect(page).toContain(`- **${row.split(' ')[0]}**`);
  });
});
