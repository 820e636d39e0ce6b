import { signatureAlgorithms } from '../../../src/auth/verifyToken.js';
import { codesOf, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { type IdentityProvider, startIdentityProvider } from '../../support/identityProvider.js';
import { read } from '../../support/repository.js';

// The settings of docs/identity-providers.md, each with tokens as the provider documents them. Only the key set is another.

const page = read('docs/identity-providers.md');
const settingsUnder = (heading: string) => {
  const [, block = ''] = /```sh\n([\s\S]*?)```/.exec(page.split(`\n## ${heading}\n`)[1] ?? '') ?? [];
  const lines = [...block.matchAll(/^(AUTH_\w+)=(?:'(.*)'|(.*))$/gm)];
  return Object.fromEntries(lines.map(([, name = '', quoted, plain]) => [name, quoted ?? plain ?? '']));
};

type Claims = Readonly<Record<string, unknown>>;
interface Sample {
  readonly is: string;
  readonly claims: Claims;
  /** The `typ` of its header. */
  readonly typ?: string;
  /** What the caller may read of t1, t2 and a job of t1; nothing is said of a token that is refused. */
  readonly reads?: readonly string[];
}

// https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference
const entra = {
  iss: 'https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0',
  aud: '00001111-aaaa-2222-bbbb-3333cccc4444',
  aio: 'AUQAu/8TAAAA',
  azp: '22223333-cccc-4444-dddd-5555eeee6666',
  azpacr: '1',
  oid: 'aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb',
  rh: '0.ARoA',
  sub: 'hKvJ5VYlLb9RSrzVXZW8HsNBLTmwBaRJb0Ls7XGzQ',
  tid: 'aaaabbbb-0000-cccc-1111-dddd2222eeee',
  uti: 'fqiBqXLPj0eQa82S-IYFAA',
  ver: '2.0',
};
const ofUser = { ...entra, name: 'Ada', preferred_username: 'ada@contoso.example', 'extn.taxpayerIds': ['t1'] };

// https://auth0.com/docs/secure/tokens/access-tokens/access-token-profiles
const auth0 = {
  iss: 'https://tenant.eu.auth0.com/',
  sub: 'auth0|6553da60a54af58e29493993',
  aud: ['https://gateway.example/', 'https://tenant.eu.auth0.com/userinfo'],
  client_id: 'K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja',
  jti: '73WakrfVbNJBaAmhQtEeDv',
  scope: 'openid profile read:taxpayers read:jobs',
  permissions: ['read:taxpayers'],
  'https://gateway.example/taxpayers': ['t1'],
};

// https://www.keycloak.org/docs/latest/server_admin/
const keycloak = {
  iss: 'https://keycloak.example/realms/tax',
  jti: 'onrtac:5a1c9a7e-5f3e-4b0b-8a57-26c1a3a3f9f0',
  aud: ['taxpayer-gateway', 'account'],
  sub: 'f:0d1a3b4c:ada',
  typ: 'Bearer',
  azp: 'portal',
  sid: '7b1b2a1e-2a51-4d2b-9c3f-0f6c3c3f5e55',
  acr: '1',
  'allowed-origins': ['https://portal.example'],
  realm_access: { roles: ['default-roles-tax', 'offline_access', 'uma_authorization', 'taxpayer-reader'] },
  resource_access: { account: { roles: ['manage-account', 'view-profile'] } },
  scope: 'openid email profile',
  email_verified: true,
  preferred_username: 'ada',
  taxpayer_ids: ['t1'],
};

const samples: Readonly<Record<string, readonly Sample[]>> = {
  'Microsoft Entra ID': [
    { is: 'a user with a scope', claims: { ...ofUser, scp: 'Taxpayers.Read profile' }, reads: ['t1'] },
    {
      is: 'an application with a role',
      claims: { ...entra, idtyp: 'app', roles: ['Jobs.Read.All'] },
      reads: ['job'],
    },
    { is: 'a user without any', claims: ofUser, reads: [] },
    { is: 'a token of version 1', claims: { ...ofUser, iss: `https://sts.windows.net/${entra.tid}/` } },
    {
      is: 'a token for Microsoft Graph',
      claims: { ...ofUser, aud: '00000003-0000-0000-c000-000000000000' },
    },
    { is: 'an ID token', claims: { ...ofUser, nonce: 'aBcD', roles: ['Jobs.Read.All'] } },
  ],
  Auth0: [
    { is: 'a user with a permission', typ: 'at+jwt', claims: auth0, reads: ['t1'] },
    {
      is: 'a user with two',
      typ: 'at+jwt',
      claims: { ...auth0, permissions: ['read:taxpayers', 'read:jobs'] },
      reads: ['t1', 'job'],
    },
    { is: 'a token of the Auth0 profile', typ: 'JWT', claims: { ...auth0, gty: 'password' } },
    { is: 'an ID token', typ: 'JWT', claims: { ...auth0, aud: 'https://gateway.example/' } },
  ],
  Keycloak: [
    { is: 'a user with a role of the realm', claims: keycloak, reads: ['t1'] },
    {
      is: 'a user with roles of the client, which count before those of the realm',
      claims: { ...keycloak, resource_access: { 'taxpayer-gateway': { roles: ['taxpayer-reader', 'job-reader'] } } },
      reads: ['t1', 'job'],
    },
    { is: 'a token of a version before 25, with a nonce', claims: { ...keycloak, nonce: 'n' }, reads: ['t1'] },
    { is: 'an ID token', claims: { ...keycloak, typ: 'ID', aud: 'taxpayer-gateway', at_hash: 'x' } },
    { is: 'a refresh token', claims: { ...keycloak, typ: 'Refresh', aud: keycloak.iss } },
  ],
  'Several providers': [
    { is: 'a user of the one', claims: { ...keycloak, realm_access: { roles: ['taxpayers:read'] } }, reads: ['t1'] },
    {
      is: 'a user of the other',
      claims: { ...auth0, permissions: ['taxpayers:read'], taxpayer_ids: ['t1'] },
      reads: ['t1'],
    },
    { is: 'an audience of neither', claims: { ...keycloak, aud: 'account' } },
  ],
};

describe.each(Object.entries(samples))('docs/identity-providers.md, %s:', (heading, tokens) => {
  let keys: IdentityProvider;
  let gateway: TestGateway;
  beforeAll(async () => {
    keys = await startIdentityProvider();
    const settings = settingsUnder(heading);
    const jwksUrls = settings['AUTH_ISSUER']?.split(',').map(() => keys.jwksUrl);
    gateway = await startTestGateway({ AUTH_MODE: 'jwt', ...settings, AUTH_JWKS_URL: jwksUrls?.join() });
    for (const id of ['t1', 't2']) gateway.sandbox.addTaxpayer({ id, status: 'AUTHORIZED' });
    gateway.sandbox.addJob({ taxpayerId: 't1', jobId: 'j1', status: 'completed' });
  });

  it.each(tokens)('$is', async ({ claims, typ = 'JWT', reads }) => {
    const token = await keys.token(claims, { header: { typ } });
    const query =
      '{ t1: taxpayer(id: "t1") { id } t2: taxpayer(id: "t2") { id } job: refreshJob(taxpayerId: "t1", jobId: "j1") { status } }';
    const answer = await gateway.query<Record<string, unknown>>(query, {}, { authorization: `Bearer ${token}` });
    expect(new Set(codesOf(answer))).toEqual(new Set([reads ? 'FORBIDDEN' : 'UNAUTHENTICATED']));
    expect(Object.keys(answer.data ?? {}).filter((name) => answer.data?.[name])).toEqual(reads ?? []);
  });
});

it('docs/identity-providers.md names the accepted algorithms', () => {
  const [, named = ''] = /Accepted are ([^.]*)\./.exec(page) ?? [];
  expect(named.split(/, | and /)).toEqual([...signatureAlgorithms]);
});

it('docs/identity-providers.md has no settings that are not tried here', () => {
  const headings = [...page.matchAll(/^## (.*)$[^#]*?```sh$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual(Object.keys(samples));
});
