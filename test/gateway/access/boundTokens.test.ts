import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { rawSocket } from '../../support/rawSocket.js';

const refusal =
  'The access token is bound to a key or a certificate (DPoP, cnf); the gateway does not support bound tokens';
const thumbprint = 'bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2';

let provider: TrustedProvider;
let gateway: TestGateway;

beforeAll(async () => {
  provider = await startTrustedProvider();
  gateway = await startTestGateway(provider.env);
});
afterAll(async () => {
  await gateway?.stop();
  await provider?.stop();
});

describe('A bound token', () => {
  it.each<[string, unknown]>([
    ['to a certificate', { 'x5t#S256': thumbprint }],
    ['to a DPoP key', { jkt: 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs' }],
    ['to a key in the token', { jwk: { kty: 'EC' } }],
    ['to a key by its name', { kid: 'x' }],
    ['to nothing', {}],
    ['by null', null],
    ['by a text', thumbprint],
    ['by a list', [{ jkt: 'x' }]],
  ])('%s is refused in words, over HTTP and WebSocket', async (_, cnf) => {
    const headers = { authorization: `Bearer ${await provider.token({ cnf, scope: 'taxpayers:read' })}` };
    const { status, errors } = await gateway.query('{ __typename }', {}, headers);
    expect({ status, errors }).toMatchObject({
      status: 401,
      errors: [{ message: refusal, extensions: { code: 'UNAUTHENTICATED' } }],
    });
    const socket = rawSocket(gateway.origin);
    await socket.opened;
    socket.send({ type: 'connection_init', payload: headers });
    expect(await socket.closed).toEqual({ code: 4401, reason: refusal });
    expect(gateway.logs.join()).not.toContain(thumbprint);
  });

  it('is refused in the same words when its scheme says that it is bound', async () => {
    const token = await provider.token({ cnf: { jkt: 'x' } });
    for (const scheme of ['DPoP', 'dpop']) {
      const { errors } = await gateway.query('{ __typename }', {}, { authorization: `${scheme} ${token}` });
      expect(errors?.[0]?.message).toBe(refusal);
    }
  });
});
