import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';

describe('The sandbox as a process of its own', () => {
  const entry = ['--import', 'tsx', fileURLToPath(new URL('../../../src/sandbox/main.ts', import.meta.url))];

  it('prints its loopback address as one line of JSON when ready, and ends on SIGTERM though connections are open', async () => {
    const child = spawn(process.execPath, [...entry, '--client-id', 'someone', '--client-secret', 's']);
    const ended = once(child, 'exit');
    const [line] = await once(createInterface(child.stdout), 'line');
    const { url, demo } = JSON.parse(line);
    expect(new URL(url).hostname).toBe('127.0.0.1');
    const authorization = `Bearer ${Buffer.from('someone:s').toString('base64')}`;
    const path = `/auth/tax-payer/${demo.taxpayerIds.authorized}/token`;
    expect((await fetch(url + path, { headers: { authorization } })).status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });

  it.each(['port', 'job-duration-ms'])('names --%s that it cannot use in one line and ends with 1', async (flag) => {
    const child = spawn(process.execPath, [...entry, `--${flag}`, 'abc']);
    const ended = once(child, 'exit');
    const lines: string[] = [];
    for await (const line of createInterface(child.stderr)) lines.push(line);
    expect(lines).toEqual([`--${flag} must be a whole number, found "abc"`]);
    expect(await ended).toEqual([1, null]);
  });
});
