import { Authenticator } from '../../src/auth/Authenticator.js';
import type { KeySource } from '../../src/auth/IssuerKeys.js';
import { loadConfig } from '../../src/config/config.js';
import { authUnavailable } from '../../src/errors/errors.js';
import { endOfTurn } from '../../src/process/pause.js';
import { times } from '../support/times.js';

it('While the keys cannot be read, no more requests wait for them than memory has room for', async () => {
  const failures: (() => void)[] = [];
  const usable = () =>
    new Promise<never>((_, reject) => failures.push(() => reject(authUnavailable('no keys', 'no answer'))));
  const keys: KeySource = { current: undefined, usable };
  const issuer = 'https://id.example/';
  const config = loadConfig({ AUTH_MODE: 'jwt', AUTH_ISSUER: issuer, AUTH_AUDIENCE: 'gateway' });
  const authenticator = new Authenticator(config, new Map([[issuer, keys]]));
  const part = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64url');
  const token = `Bearer ${part({ alg: 'ES256', typ: 'JWT' })}.${part({ iss: issuer })}.AAAA`;
  const failAll = () => {
    for (const fail of failures.splice(0)) fail();
  };
  const reasons: string[] = [];
  const ask = async (authorization = token) => authenticator.identify({ authorization });
  const all = times(100_001, () => ask().catch(({ message }) => reasons.push(message)));
  await endOfTurn();
  expect(new Set(reasons)).toEqual(new Set(['Too many access tokens are being verified at the moment']));
  failAll();
  await Promise.all(all);
  reasons.length = 0;
  const long = `Bearer ${part({ alg: 'ES256', typ: 'JWT', x: Array(3500).fill({}) })}.${part({ iss: issuer })}.AAAA`;
  const longer = times(2000, () => ask(long).catch(({ message }) => reasons.push(message)));
  await endOfTurn();
  expect(reasons.length).toBeGreaterThan(500); // each waits with a header that takes half a megabyte
  failAll();
  await Promise.all(longer);
  const later = ask();
  await endOfTurn();
  failAll();
  await expect(later).rejects.toThrow('no keys');
});
