import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { type Environment, startTestGateway, type TestGateway } from '../../support/gateway.js';

// A certified OpenID provider, with nothing but its address told to the gateway.

// Of its views for development, and of Node 20, on which it runs all the same.
for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
const { default: Provider } = await import('oidc-provider');

const audience = 'taxpayer-gateway';
const callback = 'https://portal.example/callback';
const stops: (() => unknown)[] = [];
let server: Server;
let issuer = '';

beforeAll(async () => {
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await publish(await newKey('first'));
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(() => {
  jest.restoreAllMocks();
  server.closeAllConnections();
  server.close();
});

async function newKey(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg: 'ES256', use: 'sig' };
}

/** The provider signs with the first of these keys. */
async function publish(...keys: JWK[]): Promise<void> {
  const ofMachine = {
    client_secret: 'secret',
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
  };
  const provider = new Provider(issuer, {
    jwks: { keys },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    clients: [
      { client_id: 'batch', ...ofMachine },
      { client_id: audience, client_secret: 'secret', redirect_uris: [callback] },
    ],
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
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    cookies: { keys: ['of-a-test'] },
    pkce: { required: () => false },
  });
  server.removeAllListeners('request').on('request', provider.callback());
}

interface Jwt {
  readonly payload: object;
}

/** The answer of the token endpoint. */
async function ask(clientId: string, form: Record<string, string>, headers: Record<string, string> = {}) {
  const authorization = `Basic ${Buffer.from(`${clientId}:secret`).toString('base64')}`;
  const body = new URLSearchParams(form);
  const response = await fetch(`${issuer}/token`, { method: 'POST', headers: { authorization, ...headers }, body });
  const answer = (await response.json()) as { access_token: string; id_token?: string; token_type: string };
  expect(answer).toMatchObject({ access_token: expect.any(String) });
  return answer;
}

const machine = { grant_type: 'client_credentials', scope: 'taxpayers:read' };

/** What a person gets who signs in with a browser; OpenID makes the nonce optional. */
async function signIn(nonce?: string) {
  const cookies = new Map<string, string>();
  const visit = async (address: string, body?: URLSearchParams) => {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const options = { redirect: 'manual', headers: { cookie }, ...(body && { method: 'POST', body }) } as const;
    const response = await fetch(new URL(address, issuer), options);
    for (const [, name = '', value = ''] of response.headers
      .getSetCookie()
      .map((set) => /^(.*?)=(.*?);/.exec(set) ?? [])) {
      cookies.set(name, value);
    }
    return response;
  };
  const scope = 'openid taxpayers:read';
  const asked = { client_id: audience, response_type: 'code', redirect_uri: callback, scope, ...(nonce && { nonce }) };
  let response = await visit(`/auth?${new URLSearchParams(asked)}`);
  for (let steps = 0; steps < 10; steps += 1) {
    const address = response.headers.get('location') ?? '';
    const code = address.startsWith(callback) && new URL(address).searchParams.get('code');
    if (code) return ask(audience, { grant_type: 'authorization_code', code, redirect_uri: callback });
    response = await visit(address);
    if (response.status !== 200) continue;
    const [, prompt = ''] = /name="prompt" value="(\w+)"/.exec(await response.text()) ?? [];
    response = await visit(address, new URLSearchParams({ prompt, login: 'ada', password: 'any' }));
  }
  throw new Error('The provider did not end the sign-in.');
}

async function gatewayWith(env: Environment = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({ AUTH_MODE: 'jwt', AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience, ...env });
  stops.push(gateway.stop);
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
  it('the access tokens of a machine and of a person are taken, their ID token is not', async () => {
    const gateway = await gatewayWith(env);
    expect(await read(gateway, (await ask('batch', machine)).access_token)).toBe('AUTHORIZED');
    const person = await signIn('once');
    expect(await read(gateway, person.access_token)).toBe('AUTHORIZED');
    const isStrict = env['AUTH_TOKEN_TYPES'] !== undefined;
    expect(await read(gateway, person.id_token)).toMatch(
      isStrict ? /accepted type \(typ\)/ : /^This is not an access token/,
    );
  });
});
