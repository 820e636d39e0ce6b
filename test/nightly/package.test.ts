import { spawn } from 'node:child_process';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { postQuery } from '../support/gateway.js';
import { scratch } from '../support/scratch.js';
import { run } from './support/run.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const directory = scratch();
const app = join(directory, 'app');
let tarball: string;

beforeAll(async () => {
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', directory], { cwd: root });
  tarball = join(directory, readdirSync(directory).find((name) => name.endsWith('.tgz')) ?? '');
}, 120_000);

describe('The package', () => {
  it('is small', () => {
    expect(statSync(tarball).size).toBeLessThan(4_000_000); // most of it is the explorer
  });

  it('keeps what publint asks for', async () => {
    const publint = fileURLToPath(new URL('node_modules/publint/src/cli.js', import.meta.url));
    const { code, output } = await run(process.execPath, [publint, tarball, '--strict']);
    expect({ code, output }).toMatchObject({ code: 0 });
  }, 120_000);

  it('starts by npx from an empty folder and serves', async () => {
    await run('mkdir', [app]);
    writeFileSync(join(app, 'package.json'), '{"private":true,"type":"module"}');
    const install = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', tarball];
    const installed = await run('npm', install, { cwd: app });
    expect(installed).toMatchObject({ code: 0 });

    const help = await run('npx', ['--no-install', 'taxpayer-gateway', '--help'], { cwd: app });
    expect(help.output).toContain('taxpayer-gateway check');
    const version = await run('npx', ['--no-install', 'taxpayer-gateway', '--version'], { cwd: app });
    expect(version.output).toMatch(/^\d+\.\d+\.\d+/m);

    const child = spawn('npx', ['--no-install', 'taxpayer-gateway'], {
      cwd: app,
      env: { ...process.env, PORT: '0', NODE_OPTIONS: '' },
      detached: true,
    });
    try {
      const port = await new Promise<string>((resolve, reject) => {
        let text = '';
        child.stdout.on('data', (chunk: Buffer) => {
          text += chunk.toString();
          const ready = /"graphql":"http:\/\/[^"]*:(\d+)\/graphql"/.exec(text)?.[1];
          if (ready) resolve(ready);
        });
        child.once('exit', (exit) => reject(new Error(`exited with ${exit}: ${text}`)));
      });
      expect(await postQuery(`http://127.0.0.1:${port}`, '{ __typename }')).toMatchObject({
        data: { __typename: 'Query' },
      });
    } finally {
      process.kill(-(child.pid ?? 0), 'SIGTERM');
    }
  }, 300_000);
});
