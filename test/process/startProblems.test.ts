import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { listenProblem } from '../../src/process/listenProblem.js';
import { type Environment, launchGateway } from '../support/gateway.js';

const entry = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

it.each([
  ['EADDRINUSE', 'listen', 'METRICS_PORT is in use by another process: expected a free one'],
  ['EACCES', 'listen', 'METRICS_PORT may not be used by this user: expected a port that needs no privileges'],
  ['EADDRNOTAVAIL', 'listen', 'HOST is not an address of this machine'],
  ['ENOTFOUND', 'getaddrinfo', 'HOST is not an address of this machine'],
  ['EACCES', 'open', undefined],
  ['EACCES', undefined, undefined],
])('%s of %s is told as %p', (code, syscall, line) => {
  const error = Object.assign(new Error(code), { code, syscall });
  expect(listenProblem(error, 'METRICS_PORT')).toBe(line);
});

it('A HOST that is an address of another machine ends the start with one line that names it', async () => {
  const host = { HOST: '192.0.2.1', AUTH_MODE: 'disabled' };
  const { output, exited } = launchGateway({ ...host, PORT: '0', CACHE_URL: 'memory:' });
  expect(await exited).toBe(1);
  expect(output().split('\n')).toContain('HOST is not an address of this machine');
});

describe.each(['2', '4', '8'])('Workers that cannot start, with WORKERS=%s', (WORKERS) => {
  const fails = async (env: Environment) => {
    const { child, output } = launchGateway({ WORKERS, CACHE_URL: 'memory:', ...env });
    const [code] = await once(child, 'close'); // of the outputs too, which the workers share
    expect(code).toBe(1);
    return output();
  };

  it('have one line that says why, and nothing else', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const told = await fails({ PORT: `${port}` });
    taken.close();
    expect(told).toBe('PORT is in use by another process: expected a free one\n');
    const missing = { TLS_CERT_FILE: '/nonexistent', TLS_KEY_FILE: '/nonexistent' };
    expect(await fails({ PORT: '0', ...missing })).toBe('TLS_CERT_FILE cannot be read (ENOENT)\n');
  });
});

it('A secret from a pipe is refused with several workers, each of which would read it', async () => {
  const script = 'printf the-secret | "$0" "$1"';
  const env = {
    ...{ PATH: process.env['PATH'], PORT: '0', CACHE_URL: 'memory:', AUTH_MODE: 'disabled', WORKERS: '2' },
    ...{ UPSTREAM_BASE_URL: 'http://127.0.0.1:9', UPSTREAM_CLIENT_ID: 'a', UPSTREAM_CLIENT_SECRET_FILE: '/dev/stdin' },
  };
  const child = spawn('sh', ['-c', script, process.execPath, entry], { env });
  const [stderr] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  expect(child.exitCode).toBe(1);
  expect(stderr).toBe('UPSTREAM_CLIENT_SECRET_FILE must be a file, not a pipe, with WORKERS above 1\n');
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
