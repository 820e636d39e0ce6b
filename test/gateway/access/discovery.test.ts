import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, globalAgent } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { readIssuerKeys } from '../../../src/auth/discovery.js';
import { issueCertificate } from '../../support/certificate.js';
import { type IdentityProvider, startIdentityProvider } from '../../support/identityProvider.js';
import { startIssuerMetadata } from '../../support/issuerMetadata.js';
import { bearer, jwtAuthenticator } from '../../support/jwtAuthenticator.js';

const openId = '/.well-known/openid-configuration';
const oauth = '/.well-known/oauth-authorization-server';

describe('AUTH_ISSUER alone', () => {
  let keys: IdentityProvider;
  let metadata: Awaited<ReturnType<typeof startIssuerMetadata>>;
  beforeAll(async () => {
    keys = await startIdentityProvider({ keys: ['ES256'] });
    metadata = await startIssuerMetadata();
  });
  afterAll(async () => {
    await keys.stop();
    await metadata.stop();
  });
  afterEach(() => {
    metadata.documents.clear();
    metadata.asked.length = 0;
  });

  const read = (issuer: string) => readIssuerKeys({ issuer, jwksUrl: undefined }, AbortSignal.timeout(5000));

  it.each([
    ['an origin', '', openId],
    ['an origin with a slash', '/', openId],
    ['a path', '/realms/tax', `/realms/tax${openId}`],
    ['a path with a slash', '/tenant/v2.0/', `/tenant/v2.0${openId}`],
    ['an authorization server (RFC 8414)', '', oauth],
    ['one with a path', '/tenant', `${oauth}/tenant`],
    ['one with a path and a slash', '/tenant/', `${oauth}/tenant`],
  ])('finds the key set of an issuer that is %s', async (_, path, place) => {
    const issuer = `${metadata.origin}${path}`;
    metadata.documents.set(place, { issuer, jwks_uri: keys.jwksUrl, token_endpoint: 'https://id.example/token' });
    const authenticator = jwtAuthenticator([{ issuer, jwksUrl: '' }], { env: { AUTH_JWKS_URL: undefined } });
    const token = await keys.token({ iss: issuer, sub: 'grace' });
    expect((await authenticator.authenticate(bearer(token))).subject).toBe('grace');
    expect(metadata.asked.at(-1)).toBe(place);
  });

  it('follows a key set that moves', async () => {
    const issuer = metadata.origin;
    const later = await startIdentityProvider({ keys: ['ES256'] });
    const authenticator = jwtAuthenticator([{ issuer, jwksUrl: '' }], { env: { AUTH_JWKS_URL: undefined } });
    for (const place of [keys, later]) {
      metadata.documents.set(openId, { issuer, jwks_uri: place.jwksUrl });
      expect((await authenticator.authenticate(bearer(await place.token({ iss: issuer })))).subject).toBe('ada');
    }
    await later.stop();
  });

  it.each<[string, string, (issuer: string) => unknown, RegExp]>([
    [
      'of another issuer',
      'other-issuer',
      () => ({ issuer: 'https://id.example' }),
      /names https:\/\/id\.example, AUTH_ISSUE/,
    ],
    ['of the issuer with a slash', 'other-issuer', (issuer) => ({ issuer: `${issuer}/` }), /must be exactly that$/],
    [
      'of many tenants',
      'other-issuer',
      () => ({ issuer: 'https://id.example/{tenant id}' }),
      /names another issuer, AUTH/,
    ],
    ['without an issuer', 'not-metadata', () => ({ issuer: undefined }), /jwks_uri/],
    ['without a key set', 'not-metadata', (issuer) => ({ issuer, jwks_uri: undefined }), /jwks_uri/],
    ['with a key set in a file', 'not-metadata', (issuer) => ({ issuer, jwks_uri: 'file:///etc/passwd' }), /jwks_uri/],
    ['with a key set that is no address', 'not-metadata', (issuer) => ({ issuer, jwks_uri: 'http://[' }), /jwks_uri/],
    ['that is a list', 'not-metadata', () => [], /jwks_uri/],
    ['that is no JSON', 'not-metadata', () => '<html>', /jwks_uri/],
    ['elsewhere', 'redirect', () => 302, /^metadata: redirects are not followed$/],
    ['that are not there', 'status', () => 404, /^metadata: HTTP 404$/],
    ['of a provider in trouble', 'status', () => 503, /^metadata: HTTP 404$/],
  ])('takes no keys from metadata %s', async (_, fault, document, cause) => {
    const made = document(metadata.origin);
    const usual = { issuer: metadata.origin, jwks_uri: keys.jwksUrl };
    const isObject = typeof made === 'object' && !Array.isArray(made);
    metadata.documents.set(openId, isObject ? { ...usual, ...made } : made);
    const before = keys.counts.jwks;
    expect(await read(metadata.origin)).toEqual({ fault, cause: expect.stringMatching(cause) });
    expect(keys.counts.jwks).toBe(before);
  });

  it('says that a provider cannot be reached, without asking twice', async () => {
    expect(await read('http://127.0.0.1:9')).toEqual({ fault: 'network', cause: 'metadata: ECONNREFUSED' });
  });

  it('reads no key set in the clear for an issuer with https', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'discovery-'));
    const [certFile, keyFile] = [join(directory, 'tls.crt'), join(directory, 'tls.key')];
    issueCertificate('localhost', { certFile, keyFile });
    const [cert, key] = [readFileSync(certFile), readFileSync(keyFile)];
    const server = createServer({ cert, key }, (_, response) =>
      response.end(JSON.stringify({ issuer, jwks_uri: keys.jwksUrl })),
    );
    await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
    const issuer = `https://localhost:${(server.address() as AddressInfo).port}`;
    globalAgent.options.ca = cert;
    expect(await read(issuer)).toEqual({ fault: 'not-metadata', cause: 'jwks_uri is not https:, the issuer is' });
    delete globalAgent.options.ca;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true });
  });
});
