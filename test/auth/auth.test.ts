import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Authenticator } from '../../src/auth/Authenticator.js';
import { allScopes, type Caller, router } from '../../src/auth/caller.js';
import { credentialsOf, credentialsOfSocket, identifier, RouterSecrets } from '../../src/auth/identify.js';
import { loadConfig } from '../../src/config/config.js';
import { Secret } from '../../src/config/secret.js';
import { createLogger } from '../../src/observability/log.js';
import { type IdentityProvider, startIdentityProvider, strangeKey } from '../support/identityProvider.js';
import { bearer, jwtAuthenticator, refusalOf } from '../support/jwtAuthenticator.js';
import { until } from '../support/redis.js';

const seconds = 1000;
const planted = 'planted-claim';

describe('Authenticator', () => {
  let provider: IdentityProvider;
  let authenticator: Authenticator;

  beforeAll(async () => {
    provider = await startIdentityProvider({ keys: ['PS256', 'ES256', 'ES384', 'EdDSA', 'RS256'] });
  });

  afterAll(() => provider.stop());

  beforeEach(() => {
    authenticator = jwtAuthenticator([provider]);
  });

  const nowSeconds = () => Math.floor(Date.now() / seconds);
  const authenticate = async (authorization?: string): Promise<Caller> => authenticator.authenticate(authorization);

  it('tells who the bearer is and what the token allows', async () => {
    const exp = nowSeconds() + 60;
    const scope = 'taxpayers:read openid refresh-jobs:read';
    const token = await provider.token({ sub: 'grace', exp, scope, taxpayer_ids: ['t1', 't2'] });
    expect(await authenticate(bearer(token))).toEqual({
      kind: 'bearer',
      key: expect.stringMatching(/^[\w-]{43}$/),
      subject: 'grace',
      scopes: new Set(['taxpayers:read', 'refresh-jobs:read']),
      taxpayers: new Set(['t1', 't2']),
      expiresAt: exp * seconds,
    });
  });

  it.each(['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'])('accepts %s', async (alg) => {
    const caller = await authenticate(bearer(await provider.token({}, { alg })));
    expect(caller.subject).toBe('ada');
  });

  it.each(['bearer', 'BEARER', 'Bearer   '])('accepts the scheme written %s', async (scheme) => {
    expect((await authenticate(`${scheme} ${await provider.token()}`)).subject).toBe('ada');
  });

  // Claims are made when the test runs: on a busy machine that is long after the tests are listed.
  it.each<[string, () => Record<string, unknown>]>([
    ['one of several audiences', () => ({ aud: ['x', 'other-audience'] })],
    ['no iat and a fraction in exp', () => ({ iat: undefined, exp: nowSeconds() + 600.5 })],
    [
      'a provider clock that is 3 seconds ahead',
      () => ({ nbf: nowSeconds() + 3, iat: nowSeconds() + 3, exp: nowSeconds() + 600 }),
    ],
    ['an exp that has passed 2 seconds ago', () => ({ exp: nowSeconds() - 2 })],
    ['the longest sub', () => ({ sub: 's'.repeat(255) })],
  ])('accepts %s', async (_, claims) => {
    expect((await authenticate(bearer(await provider.token(claims())))).kind).toBe('bearer');
  });

  it.each<[string, (token: string) => string | undefined]>([
    ['no header', () => undefined],
    ['an empty header', () => ''],
    ['another scheme', () => 'Basic YTpi'],
    ['a token without scheme', (token) => token],
    ['no token', () => 'Bearer '],
    ['two tokens', (token) => `Bearer ${token} ${token}`],
    ['two tokens with a comma', (token) => `Bearer ${token},Bearer ${token}`],
    ['a tab for the space', (token) => `Bearer\t${token}`],
    ['a character outside of the syntax', (token) => `Bearer ${token}é`],
    ['a line break at the end', (token) => `Bearer ${token}\n`],
    ['text', () => `Bearer ${planted}`],
    ['two parts', (token) => bearer(token.split('.').slice(0, 2).join('.'))],
    ['four parts', (token) => bearer(`${token}.x`)],
    ['five parts', (token) => bearer(`${token}.x.x`)],
    ['a header that is no JSON', (token) => bearer(`x${token}`)],
    ['a payload that is no JSON', (token) => bearer(token.replace('.', '.x'))],
    ['a token over 8 KiB', (token) => bearer(`${token}${'A'.repeat(8192)}`)],
  ])('refuses %s, without reading any key', async (_, headerOf) => {
    const asked = provider.counts.jwks;
    const message = await refusalOf(authenticator, headerOf(await provider.token({ sub: planted })));
    expect(message).not.toContain(planted);
    expect(provider.counts.jwks).toBe(asked);
  });

  const rs = (how: Parameters<IdentityProvider['token']>[1]) => ({ alg: 'RS256', ...how });
  const past = nowSeconds() - 3600;
  const future = nowSeconds() + 3600;

  it.each<[string, (p: IdentityProvider) => Promise<string>, RegExp]>([
    ['alg none', (p) => p.token({}, { alg: 'none' }), /algorithm/],
    ['alg NONE', (p) => p.token({}, rs({ header: { alg: 'NONE' } })), /algorithm/],
    ['no alg', (p) => p.token({}, rs({ header: { alg: undefined } })), /algorithm/],
    ['an alg that is a list', (p) => p.token({}, rs({ header: { alg: ['RS256'] } })), /algorithm/],
    ['an alg of a prototype', (p) => p.token({}, rs({ header: { alg: 'constructor' } })), /algorithm/],
    ['HS256 with the public key', (p) => p.token({}, { alg: 'HS256', key: p.publicPem('RS256') }), /algorithm/],
    ['HS256 with an empty key', (p) => p.token({}, { alg: 'HS256' }), /algorithm/],
    ['RS384', (p) => p.token({}, { alg: 'RS384' }), /algorithm/],
    ['ES256 named on an RSA key', (p) => p.token({}, rs({ header: { alg: 'ES256' } })), /key/],
    ['PS256 named on an RS256 key', (p) => p.token({}, rs({ header: { alg: 'PS256' } })), /key/],
    ['a missing signature', async (p) => (await p.token()).replace(/[^.]*$/, ''), /key/],
    ['a key nobody published', (p) => p.token({}, rs({ key: strangeKey() })), /key/],
    ['a key nobody published, without kid', (p) => p.token({}, rs({ key: strangeKey(), kid: null })), /key/],
    ['an unknown kid', (p) => p.token({}, rs({ kid: 'unknown' })), /key/],
    ['a kid like a path', (p) => p.token({}, rs({ kid: '../../../dev/null' })), /key/],
    ['a kid that is a number', (p) => p.token({}, rs({ kid: 1 })), /key/],
    ['a kid that is an object', (p) => p.token({}, rs({ kid: { $ne: '' } })), /key/],
    ['an unknown crit', (p) => p.token({}, rs({ header: { crit: ['exp'], exp: 1 } })), /malformed/],
    ['an empty crit', (p) => p.token({}, rs({ header: { crit: [] } })), /malformed/],
    ['an unencoded payload', (p) => p.token({}, rs({ header: { crit: ['b64'], b64: false } })), /malformed/],
    ['another issuer', (p) => p.token({ iss: `https://${planted}/` }), /issuer/],
    ['an issuer without its last character', (p) => p.token({ iss: p.issuer.slice(0, -1) }), /issuer/],
    ['an issuer in a list', (p) => p.token({ iss: [p.issuer] }), /issuer/],
    ['no issuer', (p) => p.token({ iss: undefined }), /issuer/],
    ['another audience', (p) => p.token({ aud: planted }), /audience/],
    ['an audience that only begins the same', (p) => p.token({ aud: 'taxpayer-gateway-2' }), /audience/],
    ['an audience in an object', (p) => p.token({ aud: { 0: 'taxpayer-gateway' } }), /audience/],
    ['no audience', (p) => p.token({ aud: undefined }), /audience/],
    ['an expired token', (p) => p.token({ exp: past }), /expired/],
    ['an exp of 5 seconds ago', (p) => p.token({ exp: nowSeconds() - 5 }), /expired/],
    ['no exp', (p) => p.token({ exp: undefined }), /expiry/],
    ['exp 1e999', (p) => p.token({ exp: Number.POSITIVE_INFINITY }), /expiry/],
    ['exp 1e300', (p) => p.token({ exp: 1e300 }), /expiry/],
    ['exp as text', (p) => p.token({ exp: String(future) }), /expiry/],
    ['exp null', (p) => p.token({ exp: null }), /expiry/],
    ['a token of the future', (p) => p.token({ nbf: future }), /not valid yet/],
    ['nbf 1e999', (p) => p.token({ nbf: Number.POSITIVE_INFINITY }), /not valid yet/],
    ['nbf -1e999', (p) => p.token({}, { payload: payload(p, '"nbf":-1e999') }), /not valid yet/],
    ['nbf as text', (p) => p.token({ nbf: '0' }), /not valid yet/],
    ['a token issued in the future', (p) => p.token({ iat: future, exp: future + 60 }), /not valid yet/],
    ['iat 1e999', (p) => p.token({ iat: Number.POSITIVE_INFINITY }), /malformed/],
    ['iat as text', (p) => p.token({ iat: planted }), /malformed/],
    ['no sub', (p) => p.token({ sub: undefined }), /subject/],
    ['an empty sub', (p) => p.token({ sub: '' }), /subject/],
    ['a sub that is a number', (p) => p.token({ sub: 7 }), /subject/],
    ['a sub that is a list', (p) => p.token({ sub: ['ada'] }), /subject/],
    ['a sub of 256 characters', (p) => p.token({ sub: planted.padEnd(256, 'x') }), /subject/],
    ['a sub in __proto__ only', (p) => p.token({}, { payload: inPrototype(p) }), /subject|expiry/],
    ['a payload that is a list', (p) => p.token({}, { payload: '[]' }), /malformed/],
    ['a payload nested 3,000 deep', (p) => p.token({}, { payload: '['.repeat(3000) }), /malformed/],
  ])('refuses %s', async (_, tokenOf, expected) => {
    const token = await tokenOf(provider);
    const message = await refusalOf(authenticator, bearer(token));
    expect(message).toMatch(expected);
    expect(message).not.toContain(planted);
    for (const part of token.split('.').filter((text) => text.length > 8)) expect(message).not.toContain(part);
    await refusalOf(authenticator, bearer(token));
  });

  function payload(p: IdentityProvider, more: string): string {
    return `{"iss":"${p.issuer}","aud":"taxpayer-gateway","sub":"ada","exp":${future},${more}}`;
  }

  function inPrototype(p: IdentityProvider): string {
    return `{"iss":"${p.issuer}","aud":"taxpayer-gateway","__proto__":{"sub":"ada","exp":${future}}}`;
  }

  it('ignores keys and addresses that the token brings along', async () => {
    const stranger = await startIdentityProvider();
    const own = { jwk: JSON.parse(await (await fetch(stranger.jwksUrl)).text()).keys[0], jku: stranger.jwksUrl };
    const header = { ...own, x5u: stranger.jwksUrl, x5c: ['MIIB'] };
    const asked = stranger.counts.jwks;
    await refusalOf(authenticator, bearer(await provider.token({}, { alg: 'RS256', key: strangeKey(), header })));
    expect(stranger.counts.jwks).toBe(asked);
    expect((await authenticate(bearer(await provider.token({}, { header })))).subject).toBe('ada');
    await stranger.stop();
  });

  it('refuses every token with one changed character', async () => {
    const token = await provider.token({}, { alg: 'RS256' });
    await authenticate(bearer(token));
    for (const at of [5, token.indexOf('.') + 5, token.lastIndexOf('.') + 5]) {
      const other = token[at] === 'A' ? 'B' : 'A';
      await refusalOf(authenticator, bearer(token.slice(0, at) + other + token.slice(at + 1)));
    }
  });

  it('lets everyone do everything when it is disabled', async () => {
    const open = new Authenticator({ mode: 'disabled' });
    const unlimited = { kind: 'anyone', taxpayers: 'any', scopes: new Set(allScopes) };
    expect(open.authenticate(undefined)).toMatchObject(unlimited);
    expect(open.authenticate('Basic YTpi')).toMatchObject(unlimited);
  });
});

describe('Authenticator, asked a second time', () => {
  let provider: IdentityProvider;
  let clock: number;
  let authenticator: Authenticator;
  const now = () => clock;

  beforeAll(async () => {
    provider = await startIdentityProvider({ keys: ['ES256'] });
  });
  afterAll(() => provider.stop());
  beforeEach(() => {
    provider.behave('ok');
    clock = Math.floor(Date.now() / seconds) * seconds;
    authenticator = jwtAuthenticator([provider], { now });
  });

  const authenticate = async (authorization?: string): Promise<Caller> => authenticator.authenticate(authorization);

  it('says what is missing or too long', async () => {
    expect(await refusalOf(authenticator, undefined)).toBe('An Authorization header with a Bearer token is required');
    expect(await refusalOf(authenticator, bearer('x'.repeat(8193)))).toBe('The access token is too long');
    expect(await refusalOf(authenticator, bearer('x'.repeat(8192)))).toBe('The access token is malformed');
  });

  it.each([
    ['DPoP', /DPoP/],
    ['dpop', /DPoP/],
    ['xdpop', /the word Bearer and one token/],
  ])('refuses the scheme %s', async (scheme, message) => {
    expect(await refusalOf(authenticator, `${scheme} token`)).toMatch(message);
  });

  it('takes a token from its first moment on, each time', async () => {
    const nbf = clock / seconds + 5;
    const token = bearer(await provider.token({ nbf, iat: undefined }));
    const caller = await authenticate(token);
    expect(authenticator.authenticate(token)).toBe(caller);
    clock -= 1;
    expect(await refusalOf(authenticator, token)).toBe('The access token is not valid yet');
  });

  it('looks again at a refused token when the clock is set back', async () => {
    const early = bearer(
      await provider.token({ nbf: clock / seconds - 100, iat: undefined, exp: clock / seconds + 60 }),
    );
    clock += 100 * seconds;
    expect(await refusalOf(authenticator, early)).toBe('The access token has expired');
    clock -= 100 * seconds;
    expect((await authenticate(early)).subject).toBe('ada');
  });

  it('looks again at a token that could not be verified for want of keys, and says why', async () => {
    const token = bearer(await provider.token());
    provider.behave('error');
    const unavailable = {
      code: 'AUTH_UNAVAILABLE',
      message: 'The keys of the identity provider cannot be read at the moment',
      reason: 'key set: HTTP 503',
    };
    await expect(authenticate(token)).rejects.toMatchObject(unavailable);
    const again = authenticator.authenticate(token);
    expect(again).toBeInstanceOf(Promise);
    await expect(again).rejects.toMatchObject(unavailable);
    provider.behave('ok');
    clock += 10 * seconds;
    expect((await authenticate(token)).subject).toBe('ada');
  });

  it('tells when keys were read, and reads none once it is stopped', async () => {
    const read: string[] = [];
    const onKeySetRead = (issuer: string) => read.push(issuer);
    const stopped = jwtAuthenticator([provider], { onKeySetRead });
    stopped.start();
    stopped.stop();
    const started = jwtAuthenticator([provider], { onKeySetRead });
    started.start();
    await until(() => read.length > 0);
    started.stop();
    expect(read).toEqual([provider.issuer]);
    expect(started.keySets.get(provider.issuer)?.keysAgeMs).toBeGreaterThanOrEqual(0);
    expect(stopped.keySets.get(provider.issuer)?.keysAgeMs).toBeUndefined();
  });

  it('is ready where no provider is asked', () => {
    const { auth } = loadConfig({ AUTH_MODE: 'disabled', NODE_ENV: 'development' });
    expect(new Authenticator({ ...auth, mode: 'disabled' }).reasonNotReady()).toBeUndefined();
  });
});

describe('The secrets shared with the router', () => {
  const current = new Secret('the-current-router-secret');
  const previous = new Secret('the-previous-router-secret');
  const { federation } = loadConfig({});

  it.each<[string, string | undefined, Secret | undefined, Secret | undefined, boolean | undefined]>([
    ['accept the current secret', current.reveal(), current, undefined, true],
    ['accept the current secret during a rotation', current.reveal(), current, previous, true],
    ['accept the previous secret during a rotation', previous.reveal(), current, previous, true],
    ['refuse the previous secret after it', previous.reveal(), current, undefined, false],
    ['refuse the beginning of the secret', current.reveal().slice(0, -1), current, previous, false],
    ['refuse no header', undefined, current, previous, false],
    ['refuse an empty header', '', current, previous, false],
    ['refuse an empty header when only the previous one is set', '', undefined, previous, false],
    ['prove nothing when none is set', '', undefined, undefined, undefined],
    ['prove nothing by any header when none is set', 'undefined', undefined, undefined, undefined],
  ])('%s', (_, header, secret, previousSecret, expected) => {
    const secrets = new RouterSecrets({ ...federation, secret, previousSecret }, createLogger('error'));
    expect(secrets.accept(header)).toBe(expected);
  });

  it.each<[string, string[], readonly string[] | undefined, Secret | undefined, boolean | undefined]>([
    [
      'accept a certificate of one of the names',
      ['a.example', 'router.example'],
      ['x', 'router.example'],
      current,
      true,
    ],
    ['refuse a certificate of other names', ['router.example'], ['x'], undefined, false],
    ['refuse a certificate without names', ['router.example'], [], current, false],
    ['refuse no certificate', ['router.example'], undefined, undefined, false],
    ['prove nothing by a certificate when no name is set', [], ['router.example'], undefined, undefined],
  ])('%s', (_, certificateNames, machineNames, secret, expected) => {
    const secrets = new RouterSecrets({ ...federation, secret, certificateNames }, createLogger('error'));
    const certificate = machineNames && { subject: 'CN=any', machineNames };
    expect(secrets.accept(undefined, { address: undefined, certificate })).toBe(expected);
  });

  it('accept the secret of a file from when it is written there, and nothing too short', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'router-secret-'));
    const secretFile = join(directory, 'secret');
    writeFileSync(secretFile, current.reveal());
    const lines: string[] = [];
    const log = createLogger('info', { write: (line: string) => lines.push(line) });
    const secrets = new RouterSecrets({ ...federation, secret: current, secretFile }, log);
    try {
      expect(secrets.accept(current.reveal())).toBe(true);
      writeFileSync(secretFile, 'too-short\n');
      await until(() => lines.some((line) => line.includes('too short')));
      expect(secrets.accept(current.reveal())).toBe(true);
      writeFileSync(secretFile, `${previous.reveal()}\n`);
      await until(() => secrets.accept(previous.reveal()) === true);
      expect(secrets.accept(current.reveal())).toBe(false);
      expect(lines.map((line) => JSON.parse(line))).toMatchObject([
        { which: 'current', msg: 'the secret shared with the router is too short in its file: the one in use stays' },
        { which: 'current', msg: 'the secret shared with the router was rotated' },
      ]);
    } finally {
      secrets.stop();
      rmSync(directory, { recursive: true });
    }
  });
});

describe('What a caller shows', () => {
  const requestWith = (headers: Record<string, unknown>, address?: string) =>
    ({
      headers,
      socket: { remoteAddress: '192.0.2.1' },
      ...(address !== undefined && { peer: { address, certificate: undefined } }),
    }) as unknown as IncomingMessage;
  const headers = { authorization: 'Bearer header', 'x-gateway-router-secret': 'of-the-header' };

  it('is in the headers of a request; its address is what trusted proxies say', () => {
    expect(credentialsOf(requestWith(headers))).toMatchObject({
      authorization: 'Bearer header',
      routerSecret: 'of-the-header',
      remoteAddress: '192.0.2.1',
    });
    expect(credentialsOf(requestWith(headers, '203.0.113.9')).remoteAddress).toBe('203.0.113.9');
    expect(credentialsOf(requestWith({})).routerSecret).toBeUndefined();
  });

  it.each<[string, Record<string, unknown> | undefined, string, string]>([
    ['no parameters', undefined, 'Bearer header', 'of-the-header'],
    [
      'parameters that are null',
      { authorization: null, 'x-gateway-router-secret': null },
      'Bearer header',
      'of-the-header',
    ],
    ['names in any case', { Authorization: 'Bearer own', 'X-Gateway-Router-Secret': 'own' }, 'Bearer own', 'own'],
    ['parameters that are no text', { authorization: 7, 'x-gateway-router-secret': {} }, '', ''],
  ])('is in the parameters of a socket, or its headers: %s', (_, parameters, authorization, routerSecret) => {
    expect(credentialsOfSocket(parameters, requestWith(headers))).toMatchObject({ authorization, routerSecret });
  });

  it('makes a router of who shows its secret and no token, and nothing else', async () => {
    const provider = await startIdentityProvider({ keys: ['ES256'] });
    const { federation } = loadConfig({});
    const secret = new Secret('the-current-router-secret');
    const secrets = new RouterSecrets({ ...federation, secret }, createLogger('error'));
    const identify = identifier(jwtAuthenticator([provider]), secrets);
    const shown = credentialsOf(requestWith({ 'x-gateway-router-secret': secret.reveal() }));
    expect(identify(shown)).toMatchObject({ caller: router, fromRouter: true, remoteAddress: '192.0.2.1' });
    expect(() => identify({ ...shown, routerSecret: 'another' })).toThrow('An Authorization header');
    expect(() => identify({ ...shown, authorization: 'Basic YTpi' })).toThrow('the word Bearer and one token');
    const token = bearer(await provider.token());
    expect(await identify({ ...shown, authorization: token })).toMatchObject({
      caller: { kind: 'bearer' },
      fromRouter: true,
    });
    await provider.stop();
  });
});
