import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Authenticator } from '../../src/auth/Authenticator.js';
import { allScopes, type Caller } from '../../src/auth/caller.js';
import { type IdentityProvider, startIdentityProvider, strangeKey } from '../support/identityProvider.js';
import { bearer, jwtAuthenticator, refusalOf } from '../support/jwtAuthenticator.js';

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
    ['the deepest claims', () => ({ a: JSON.parse('['.repeat(64) + ']'.repeat(64)) })],
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
    [
      'claims nested more than 64 deep',
      (p) => p.token({ a: JSON.parse('['.repeat(65) + ']'.repeat(65)) }),
      /malformed/,
    ],
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

  it('says what is missing', async () => {
    expect(await refusalOf(authenticator, undefined)).toBe('An Authorization header with a Bearer token is required');
  });

  it.each([
    ['DPoP', /DPoP/],
    ['dpop', /DPoP/],
    ['xdpop', /the word Bearer and one token/],
  ])('refuses the scheme %s', async (scheme, message) => {
    expect(await refusalOf(authenticator, `${scheme} token`)).toMatch(message);
  });
});
