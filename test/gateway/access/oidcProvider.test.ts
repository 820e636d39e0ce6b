import { createServer } from 'node:http';
import { jest } from '@jest/globals';
import { exportJWK, generateKeyPair } from 'jose';
import { startTestGateway } from '../../support/gateway.js';
import { serve } from '../../support/serve.js';

// A certified OpenID provider, with nothing but its address told to the gateway.

// It warns of its views for development, and of Node.js 20, on which it works all the same.
for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
afterAll(() => {
  jest.restoreAllMocks();
});
const { default: Provider } = await import('oidc-provider');

const audience = 'taxpayer-gateway';
const server = createServer();
const issuer = await serve(server);
const { privateKey } = await generateKeyPair('ES256', { extractable: true });
const provider = new Provider(issuer, {
  jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'first', alg: 'ES256', use: 'sig' }] },
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  clients: [
    {
      client_id: 'batch',
      client_secret: 'secret',
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
    },
  ],
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => 'https://gateway.example/',
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        audience,
        scope: 'taxpayers:read',
        accessTokenTTL: 300,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
  formats: {
    customizers: {
      jwt: (_: unknown, __: unknown, jwt: { readonly payload: object }) =>
        Object.assign(jwt.payload, { taxpayer_ids: ['t1'] }),
    },
  },
});
server.on('request', provider.callback());

it.each([{}, { AUTH_TOKEN_TYPES: 'at+jwt' }])(
  'The access token that a real provider gives a machine is taken with %j',
  async (env) => {
    const authorization = `Basic ${Buffer.from('batch:secret').toString('base64')}`;
    const body = new URLSearchParams({ grant_type: 'client_credentials', scope: 'taxpayers:read' });
    const response = await fetch(`${issuer}/token`, { method: 'POST', headers: { authorization }, body });
    const { access_token: token } = (await response.json()) as { access_token: string };
    const gateway = await startTestGateway({ AUTH_MODE: 'jwt', AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience, ...env });
    gateway.sandbox.addTaxpayer({ id: 't1', status: 'AUTHORIZED' });
    const query = '{ taxpayerToken(taxpayerId: "t1") { status } }';
    const { data } = await gateway.query(query, {}, { authorization: `Bearer ${token}` });
    expect(data).toEqual({ taxpayerToken: { status: 'AUTHORIZED' } });
  },
);
