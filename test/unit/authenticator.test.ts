import { Authenticator } from '../../src/auth/Authenticator.js';
import type { KeySource } from '../../src/auth/IssuerKeys.js';
import { loadConfig } from '../../src/config/config.js';
import { authUnavailable } from '../../src/errors/errors.js';

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
  const reasons: string[] = [];
  const ask = async () => authenticator.identify({ authorization: token });
  const askMany = () => Array.from({ length: 100_001 }, () => ask().catch(({ message }) => reasons.push(message)));
  const all = askMany();
  await new Promise((resolve) => setImmediate(resolve));
  expect(new Set(reasons)).toEqual(new Set(['Too many access tokens are being verified at the moment']));
  for (const fail of failures.splice(0)) fail();
  await Promise.all(all);
  const later = ask();
  await new Promise((resolve) => setImmediate(resolve));
  for (const fail of failures) fail();
  await expect(later).rejects.toThrow('no keys');
});
