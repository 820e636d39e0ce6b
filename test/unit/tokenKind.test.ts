import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type IdentityProvider, startIdentityProvider } from '../support/identityProvider.js';
import { bearer, jwtAuthenticator, refusalOf } from '../support/jwtAuthenticator.js';

describe('A token of the issuer, for our audience', () => {
  let provider: IdentityProvider;
  beforeAll(async () => {
    provider = await startIdentityProvider({ keys: ['ES256'] });
  });
  afterAll(() => provider.stop());

  const strict = { env: { AUTH_TOKEN_TYPES: 'at+jwt' } };
  const tokenOf = (typ: unknown, claims = {}) => provider.token(claims, { header: { typ } });

  it.each(['JWT', 'jwt', 'application/jwt', 'at+jwt', 'AT+JWT', 'application/at+jwt', undefined])(
    'is accepted as an access token with typ %s',
    async (typ) => {
      const caller = await jwtAuthenticator([provider]).authenticate(bearer(await tokenOf(typ)));
      expect(caller.subject).toBe('ada');
    },
  );

  it.each(['at+jwt', 'application/AT+jwt'])('is accepted with typ %s where only at+jwt is', async (typ) => {
    const caller = await jwtAuthenticator([provider], strict).authenticate(bearer(await tokenOf(typ)));
    expect(caller.subject).toBe('ada');
  });

  it.each([
    'id_token+jwt',
    'logout+jwt',
    'dpop+jwt',
    'secevent+jwt',
    '',
    null,
    7,
    ['at+jwt'],
    'x/at+jwt',
    'japplication/wt', // application/ counts only at its beginning
  ])('is refused with typ %j, without a look at its signature', async (typ) => {
    const asked = provider.counts.jwks;
    const message = await refusalOf(jwtAuthenticator([provider]), bearer(await tokenOf(typ)));
    expect(message).toBe('The access token is not of an accepted type (typ)');
    expect(provider.counts.jwks).toBe(asked);
  });

  it.each(['JWT', undefined])('is refused with typ %s where only at+jwt is accepted', async (typ) => {
    expect(await refusalOf(jwtAuthenticator([provider], strict), bearer(await tokenOf(typ)))).toMatch(/accepted type/);
  });

  it.each<[string, Record<string, unknown>]>([
    ['an ID token with a nonce', { nonce: 'n' }],
    ['an ID token with the hash of an access token', { at_hash: 'h' }],
    ['an ID token with the hash of a code', { c_hash: 'h' }],
    ['an ID token with the hash of a state', { s_hash: 'h' }],
    ['an ID token of Keycloak', { typ: 'ID' }],
    ['a refresh token of Keycloak', { typ: 'Refresh' }],
    ['an offline token of Keycloak', { typ: 'Offline' }],
    ['a logout token of Keycloak', { typ: 'Logout' }],
    ['an ID token of Cognito', { token_use: 'id' }],
    ['a logout token', { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }],
  ])('is refused as %s', async (_, claims) => {
    const token = await tokenOf('JWT', { scope: 'taxpayers:any', ...claims });
    expect(await refusalOf(jwtAuthenticator([provider]), bearer(token))).toMatch(/^This is not an access token but/);
  });

  it.each<[string, string, Record<string, unknown>]>([
    ['that says it is an access token, whatever else is in it', 'at+jwt', { nonce: 'n' }],
    ['of Keycloak before version 25, with a nonce', 'JWT', { typ: 'Bearer', nonce: 'n' }],
    ['of Keycloak that is bound to a key of its client, with a nonce', 'JWT', { typ: 'DPoP', nonce: 'n' }],
    ['with a claim typ that says nothing', 'JWT', { typ: 'company-token' }],
    ['of Cognito', 'JWT', { token_use: 'access' }],
  ])('is accepted %s', async (_, typ, claims) => {
    const caller = await jwtAuthenticator([provider]).authenticate(bearer(await tokenOf(typ, claims)));
    expect(caller.subject).toBe('ada');
  });
});
