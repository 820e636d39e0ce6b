import { expect, it } from '@jest/globals';
import { listenProblem } from '../../../src/process/listenProblem.js';
import { launchGateway } from '../../support/gateway.js';

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
