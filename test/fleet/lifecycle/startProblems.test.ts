import { expect, it } from '@jest/globals';
import { launchGateway } from '../../support/gateway.js';

it('A HOST that is an address of another machine ends the start with one line that names it', async () => {
  const host = { HOST: '192.0.2.1', AUTH_MODE: 'disabled' };
  const { output, exited } = launchGateway({ ...host, PORT: '0', CACHE_URL: 'memory:' });
  expect(await exited).toBe(1);
  expect(output().split('\n')).toContain('HOST is not an address of this machine');
});
