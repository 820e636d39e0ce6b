import { join } from 'node:path';
import { freePort } from '../support/freePort.js';
import { startProgram } from '../support/program.js';
import { codeBlocks, read } from '../support/repository.js';
import { run } from '../support/run.js';
import { scratch } from '../support/scratch.js';

describe('docs/federation.md', () => {
  const blocks = codeBlocks(read('docs/federation.md')).map(({ text }) => text);
  const [start = '', compose = '', ...others] = blocks;

  it('starts a supergraph with one command, which prints a query that both subgraphs answer', async () => {
    const home = scratch();
    const [router, gateway, cases] = await Promise.all([freePort(), freePort(), freePort()]);
    const env = {
      PATH: process.env['PATH'],
      HOME: home,
      CACHE_URL: `file:${join(home, 'cache')}`,
      ROUTER_PORT: `${router}`,
      GATEWAY_PORT: `${gateway}`,
      CASES_PORT: `${cases}`,
    };
    const { printed, signal, exited } = startProgram('sh', ['-c', `exec ${start.trim()}`], { env, detached: true });
    const query = await printed(/^(curl [\s\S]*?')$/m);
    const { stdout } = await run('sh', ['-c', query]);
    const taxpayer = { token: { status: 'AUTHORIZED' }, refreshJob: { status: 'PROCESSING' } };
    expect(JSON.parse(stdout)).toMatchObject({ data: { case: { taxpayer } } });
    signal('SIGINT'); // as Ctrl-C in a terminal
    await exited;
  }, 90_000);

  it('checks a supergraph with the command shown', async () => {
    // Rover, and what publishes to registries, need accounts or downloads.
    expect(others.map((text) => text.split(' ')[0])).toEqual(['rover']);
    const command = compose.replace('> supergraph.graphql', '');
    expect((await run('sh', ['-c', command])).stdout).toContain('join__Graph');
  });
});
