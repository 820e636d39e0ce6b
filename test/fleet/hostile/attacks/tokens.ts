import { strangeKey } from '../../../support/identityProvider.js';
import { type Attack, type Scene, unread, withDocument } from './Attack.js';

const harmless = '{ __typename }';

/** Who: tokens that must not let anybody in. */
export async function tokenAttacks({ provider, token }: Scene): Promise<Attack[]> {
  const now = Math.floor(Date.now() / 1000);
  const [header = '', payload = '', signature = ''] = (await token()).split('.');
  const forged = Buffer.from(JSON.stringify({ sub: 'root', scope: 'taxpayers:any' })).toString('base64url');
  const stranger = strangeKey();
  const bearers: Readonly<Record<string, string>> = {
    'a token issued in the future': await token({ iat: now + 600 }),
    'a token without an audience': await token({ aud: undefined }),
    'a token without an issuer': await token({ iss: undefined }),
    'a token whose issuer is a list': await token({ iss: [provider.issuer] }),
    'alg none': await token({}, { alg: 'none' }),
    'HS256 with the public key as its secret': await token({}, { alg: 'HS256', key: provider.publicPem() }),
    'ES256 named over an RSA signature': await token({}, { header: { alg: 'ES256' } }),
    'PS256 with a key that is for RS256': await token({}, { alg: 'PS256' }),
    'a jku header': await token({}, { key: stranger, header: { jku: 'http://127.0.0.1:1/jwks.json' } }),
    'a jwk of its own': await token({}, { key: stranger, header: { jwk: stranger.export({ format: 'jwk' }) } }),
    'an unknown critical header': await token({}, { header: { crit: ['exp-policy'], 'exp-policy': 1 } }),
    'an ID token': await token({ nonce: 'n', at_hash: 'h' }),
    'an ID token of Keycloak': await token({ typ: 'ID' }),
    'a logout token': await token({}, { header: { typ: 'logout+jwt' } }),
    'a token without expiry': await token({ exp: undefined }),
    'an expiry of 1e999': await token({ exp: Number.POSITIVE_INFINITY }),
    'an expiry that is text': await token({ exp: String(now + 600) }),
    'a not-before of 1e999': await token({ nbf: Number.POSITIVE_INFINITY }),
    'an empty subject': await token({ sub: '' }),
    'no subject': await token({ sub: undefined }),
    'a subject that is a number': await token({ sub: 1 }),
    'a payload that is not JSON': await token({}, { payload: 'not json' }),
    'a payload that was replaced': `${header}.${forged}.${signature}`,
    'a signature that was cut': `${header}.${payload}.${signature.slice(0, -4)}`,
    'a token without its signature': `${header}.${payload}.`,
    'a token of five parts': `${header}.${payload}.${signature}.a.b`,
    'a token of 9,000 characters': 'x'.repeat(9000),
  };
  const create = 'mutation { createClientLink(input: {}) { replayed } }';
  const forbidden = { status: 200, code: 'FORBIDDEN' } as const;
  const refused = { status: 401, code: 'UNAUTHENTICATED' } as const;
  const { body } = withDocument('', harmless);
  const json = { 'content-type': 'application/json' };
  return [
    ...Object.entries(bearers).map(([name, text]) => ({
      name,
      ...withDocument(`Bearer ${text}`, harmless),
      ...refused,
    })),
    { name: 'no token', headers: json, body, ...refused },
    { name: 'an empty token', ...withDocument('Bearer ', harmless), ...refused },
    { name: 'a token in another scheme', ...withDocument(`Basic ${await token()}`, harmless), ...refused },
    {
      name: 'a token in the query string',
      path: `/graphql?access_token=${await token()}`,
      headers: json,
      body,
      ...refused,
    },
    { name: 'a token in a cookie', headers: { ...json, cookie: `token=${await token()}` }, body, ...refused },
    {
      name: 'a header block of 20,000 bytes',
      ...withDocument(`Bearer ${'x'.repeat(20_000)}`, harmless),
      ...unread(431),
    },
    {
      name: 'no scope for createClientLink',
      ...withDocument(`Bearer ${await token({ scope: 'taxpayers:read' })}`, create),
      ...forbidden,
    },
  ];
}
