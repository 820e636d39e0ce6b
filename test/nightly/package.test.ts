import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { postQuery, readyOrigin } from '../support/gateway.js';
import { startProgram } from '../support/program.js';
import { run } from '../support/run.js';
import { scratch } from '../support/scratch.js';
import { expectPublishable, pack } from './support/tarball.js';

let tarball: string;

beforeAll(async () => {
  tarball = await pack('.');
});

describe('The package', () => {
  it('is small', () => {
    expect(statSync(tarball).size).toBeLessThan(4_000_000); // most of it is the explorer
  });

  it('keeps what publint asks for', () => expectPublishable(tarball));

  it('starts by npx from an empty folder and serves', async () => {
    const app = scratch();
    writeFileSync(join(app, 'package.json'), '{"private":true,"type":"module"}');
    const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', tarball];
    await run('npm', install, { cwd: app });

    const command = ['--no-install', 'taxpayer-gateway'];
    const help = await run('npx', [...command, '--help'], { cwd: app });
    expect(help.stdout).toContain('taxpayer-gateway check');
    const env = { ...process.env, PORT: '0', NODE_OPTIONS: '' };
    const origin = await readyOrigin(startProgram('npx', command, { cwd: app, env, detached: true }));
    expect(await postQuery(origin, '{ __typename }')).toMatchObject({ data: { __typename: 'Query' } });
  }, 300_000);
});
