import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { freePort } from '../support/freePort.js';
import { postQuery } from '../support/gateway.js';
import { scratch } from '../support/scratch.js';

const root = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);
const text = readFileSync(join(root, 'docs/federation.md'), 'utf8');
const blocks = [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language, code = '']) => ({
  language,
  code,
}));

describe('docs/federation.md', () => {
  const [start, query, answer, compose, ...others] = blocks;

  it('starts a supergraph with one command, whose answer is the one shown', async () => {
    const home = scratch();
    const [router, gateway, cases] = await Promise.all([freePort(), freePort(), freePort()]);
    const child = spawn('sh', ['-c', `exec ${start?.code.trim()}`], {
      cwd: root,
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        CACHE_URL: `file:${join(home, 'cache')}`,
        ROUTER_PORT: `${router}`,
        GATEWAY_PORT: `${gateway}`,
        CASES_PORT: `${cases}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const closed = once(child, 'close');
    try {
      let output = '';
      for await (const chunk of child.stdout) {
        output += String(chunk);
        if (output.includes('curl')) break;
      }
      const { data, errors } = await postQuery(`http://127.0.0.1:${router}`, query?.code ?? '');
      expect({ errors, data }).toEqual(JSON.parse(answer?.code ?? ''));
    } finally {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGINT');
      await closed;
    }
  }, 90_000);

  it('checks a supergraph with the command shown', async () => {
    // Rover, and what publishes to registries, need accounts or downloads.
    expect(others.map(({ code }) => code.split(' ')[0])).toEqual(['rover', 'rover']);
    const command = compose?.code.replace('> supergraph.graphql', '') ?? '';
    expect((await run('sh', ['-c', command], { cwd: root })).stdout).toContain('join__Graph');
  });
});
