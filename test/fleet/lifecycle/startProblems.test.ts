import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { launchGateway } from '../../support/gateway.js';

const entry = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

it('A HOST that is an address of another machine ends the start with one line that names it', async () => {
  const host = { HOST: '192.0.2.1', AUTH_MODE: 'disabled' };
  const { output, exited } = launchGateway({ ...host, PORT: '0', CACHE_URL: 'memory:' });
  expect(await exited).toBe(1);
  expect(output().split('\n')).toContain('HOST is not an address of this machine');
});

it('A directory of developer keys that cannot be used ends the start with one line that names the file', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'start-problems-'));
  writeFileSync(join(cwd, '.taxpayer-gateway'), 'no directory');
  const child = spawn(process.execPath, [entry], { cwd, env: { PORT: '0', CACHE_URL: 'memory:' } });
  const [stderr] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  expect(child.exitCode).toBe(1);
  expect(stderr).toMatch(/^\.taxpayer-gateway\/developer-key\.json can be neither read nor created .*\n$/);
  rmSync(cwd, { recursive: true });
});
