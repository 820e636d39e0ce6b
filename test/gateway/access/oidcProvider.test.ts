import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { exportJWK, generateKeyPair } from 'jose';
import { type Environment, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { serve } from '../../support/serve.js';

// A certified OpenID provider, with nothing but its address told to the gateway.

// Of its views for development, and of Node 20, on which it runs all the same.
for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
const { default: Provider } = await import('oidc-provider');

const audience = 'taxpayer-gateway';
const server = createServer();
let issuer = '';

beforeAll(async () => {
  issuer = await serve(server);
  await answerAsProvider();
});
afterAll(() => {
  jest.restoreAllMocks();
});

/** Answers as the provider from now on. */
async function answerAsProvider(): Promise<void> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: 'first', alg: 'ES256', use: 'sig' };
  const ofMachine = {
    client_secret: 'secret',
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
  };
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    clients: [{ client_id: 'batch', ...ofMachine }],
    features: {
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'https://gateway.example/',
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          ...{ audience, scope: 'taxpayers:read', accessTokenTTL: 300, accessTokenFormat: 'jwt' },
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    formats: {
      customizers: { jwt: (_: unknown, __: unknown, jwt: Jwt) => Object.assign(jwt.payload, { taxpayer_ids: ['t1'] }) },
    },
  });
  server.removeAllListeners('request').on('request', provider.callback());
}

interface Jwt {
  readonly payload: object;
}

/** An access token for a machine. */
async function machineToken(): Promise<string> {
  const authorization = `Basic ${Buffer.from('batch:secret').toString('base64')}`;
  const body = new URLSearchParams({ grant_type: 'client_credentials', scope: 'taxpayers:read' });
  const response = await fetch(`${issuer}/token`, { method: 'POST', headers: { authorization }, body });
  return ((await response.json()) as { access_token: string }).access_token;
}

async function gatewayWith(env: Environment = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({ AUTH_MODE: 'jwt', AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience, ...env });
  gateway.sandbox.control.addTaxpayer({ id: 't1', status: 'AUTHORIZED' });
  return gateway;
}

async function read(gateway: TestGateway, token: string | undefined) {
  const headers = { authorization: `Bearer ${token}` };
  const query = '{ taxpayerToken(taxpayerId: "t1") { status } }';
  const { data, errors } = await gateway.query<{ taxpayerToken: { status: string } | null }>(query, {}, headers);
  return data?.taxpayerToken?.status ?? errors?.[0]?.message;
}

describe.each<Environment>([{}, { AUTH_TOKEN_TYPES: 'at+jwt' }])('With a real provider and %j', (env) => {
  it('the access token of a machine is taken', async () => {
    expect(await read(await gatewayWith(env), await machineToken())).toBe('AUTHORIZED');
  });
});
