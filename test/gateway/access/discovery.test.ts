import { linesWith, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { type IdentityProvider, startIdentityProvider } from '../../support/identityProvider.js';
import { startIssuerMetadata } from '../../support/issuerMetadata.js';
import { until } from '../../support/until.js';

// A gateway that is told AUTH_ISSUER, but not AUTH_JWKS_URL, finds the key set by the metadata of the issuer.

const openId = '/.well-known/openid-configuration';
const oauth = '/.well-known/oauth-authorization-server';

const [keys, later] = [await startIdentityProvider(), await startIdentityProvider()];
const metadata = await startIssuerMetadata();

afterEach(() => {
  metadata.documents.clear();
  metadata.asked.length = 0;
});

const gatewayFor = (AUTH_ISSUER: string) =>
  startTestGateway({ AUTH_MODE: 'jwt', AUTH_ISSUER, AUTH_AUDIENCE: 'taxpayer-gateway' });

async function statusFor(token: string, gateway: TestGateway) {
  return (await gateway.query('{ __typename }', {}, { authorization: `Bearer ${token}` })).status;
}

/** What the log of a gateway says that finds no keys of this issuer. */
async function loggedFailures(issuer: string) {
  const gateway = await gatewayFor(issuer);
  expect(await statusFor(await keys.token({ iss: issuer }), gateway)).toBe(503);
  const lines = () => linesWith(gateway.logs, { msg: 'a key set cannot be read' });
  await until(() => lines().length > 0);
  return lines();
}

it.each([
  ['an origin', '', openId],
  ['an origin with a slash', '/', openId],
  ['a path', '/realms/tax', `/realms/tax${openId}`],
  ['a path with a slash', '/tenant/v2.0/', `/tenant/v2.0${openId}`],
  ['an authorization server (RFC 8414)', '', oauth],
  ['one with a path', '/tenant', `${oauth}/tenant`],
  ['one with a path and a slash', '/tenant/', `${oauth}/tenant`],
])('A gateway finds the key set of an issuer that is %s, and follows it when it moves', async (_, path, place) => {
  const issuer = `${metadata.origin}${path}`;
  const publish = ({ jwksUrl }: IdentityProvider) =>
    metadata.documents.set(place, { issuer, jwks_uri: jwksUrl, token_endpoint: 'https://id.example/token' });
  publish(keys);
  const gateway = await gatewayFor(issuer);
  expect(await statusFor(await keys.token({ iss: issuer }), gateway)).toBe(200);
  expect(metadata.asked.at(-1)).toBe(place);
  publish(later);
  expect(await statusFor(await later.token({ iss: issuer }), gateway)).toBe(200);
});

const noKeySet = /names a key set \(jwks_uri\)$/;
it.each<[string, (issuer: string) => unknown, RegExp]>([
  ['of another issuer', () => ({ issuer: 'https://id.example' }), /names https:\/\/id\.example, AUTH_ISSUER/],
  ['of the issuer with a slash', (issuer) => ({ issuer: `${issuer}/` }), /must be exactly that$/],
  ['without a key set', (issuer) => ({ issuer, jwks_uri: undefined }), noKeySet],
  ['with a key set in a file', (issuer) => ({ issuer, jwks_uri: 'file:///etc/passwd' }), noKeySet],
  ['with a password', (issuer) => ({ issuer, jwks_uri: 'http://a:b@127.0.0.1/' }), noKeySet],
  ['that is no JSON', () => '<html>', /: the body is not JSON$/],
  ['elsewhere', () => 302, /: HTTP 302$/],
  ['that are not there', () => 404, /^metadata at \/.well-known\/openid-configuration: HTTP 404$/],
])('A gateway takes no keys from metadata %s, and logs why', async (_, document, cause) => {
  const made = document(metadata.origin);
  const usual = { issuer: metadata.origin, jwks_uri: keys.jwksUrl };
  metadata.documents.set(openId, typeof made === 'object' ? { ...usual, ...made } : made);
  const before = keys.counts.jwks;
  const reason = { trouble: 'invalid', cause: expect.stringMatching(cause) };
  expect(await loggedFailures(metadata.origin)).toMatchObject([reason]);
  expect(keys.counts.jwks).toBe(before);
});

it('A gateway logs that a provider cannot be reached', async () => {
  const reason = { trouble: 'network', cause: expect.stringMatching(/: ECONNREFUSED$/) };
  expect(await loggedFailures('http://127.0.0.1:9')).toMatchObject([reason]);
});
