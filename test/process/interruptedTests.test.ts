import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { processesIn } from '../support/processesIn.js';
import { until } from '../support/redis.js';

const script = fileURLToPath(new URL('../../scripts/test.js', import.meta.url));
const source = `test('takes long', () => {
  process.chdir(__dirname);
  return new Promise((resolve) => setTimeout(resolve, 60_000));
}, 60_000);
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'interrupted-tests-'));
  writeFileSync(join(folder, 'jest.config.json'), JSON.stringify({ testMatch: ['**/*.test.cjs'], transform: {} }));
  // Two, so that Jest starts workers.
  for (const name of ['one.test.cjs', 'other.test.cjs']) writeFileSync(join(folder, name), source);
});
afterEach(() => {
  for (const pid of processesIn(folder)) process.kill(pid, 'SIGKILL');
  rmSync(folder, { recursive: true });
});

describe('npm test', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('leaves no worker of Jest behind on %s', async (signal) => {
    const args = [script, '--config', join(folder, 'jest.config.json'), '--maxWorkers=2'];
    const env = { ...process.env, NODE_OPTIONS: '' };
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    const ended = Promise.all([once(child, 'exit'), text(child.stdout)]);
    await until(() => processesIn(folder).length === 2);
    child.kill(signal);
    expect(await ended).toEqual([[1, null], '0 passed, 0 failed\n']);
    await until(() => processesIn(folder).length === 0);
  });
});
