import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { makeKey, publicJwk } from '../../support/identityProvider.js';
import { rawSocket } from '../../support/rawSocket.js';

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

/** The header of a caller in so many groups, which each take 54 characters of the token. */
const memberOf = async (groups: number) =>
  `Bearer ${await provider.token({ groups: Array.from({ length: groups }, () => crypto.randomUUID()) })}`;

const overHttp = (authorization: string) => gateway.query('{ __typename }', {}, { authorization });
async function overWebSocket(authorization: string): Promise<unknown> {
  const socket = rawSocket(gateway.origin);
  await socket.opened;
  socket.send({ type: 'connection_init', payload: { authorization } });
  const outcome = await Promise.race([socket.message(({ type }) => type === 'connection_ack'), socket.closed]);
  socket.end();
  return outcome;
}

describe('An access token', () => {
  it.each([190, 280])('with %i groups is accepted, over HTTP and WebSocket', async (groups) => {
    const authorization = await memberOf(groups);
    expect(authorization.length).toBeGreaterThan(8192);
    expect(await overHttp(authorization)).toMatchObject({ status: 200, data: { __typename: 'Query' } });
    expect(await overWebSocket(authorization)).toMatchObject({ type: 'connection_ack' });
  });

  it('is refused by the transport when it does not fit into 16 kB with the rest', async () => {
    const authorization = await memberOf(320);
    const response = await fetch(`${gateway.origin}/graphql`, { method: 'POST', headers: { authorization } });
    expect(response.status).toBe(431);
    expect(await overWebSocket(authorization)).toEqual({ code: 1009, reason: 'Too much before connection_ack' });
  });
});

describe('A key set', () => {
  it('may have as many keys as fit into 1 MiB: the last one counts as the first', async () => {
    const [other, last] = [publicJwk(makeKey('ES256')), makeKey('ES256')];
    const others = Array.from({ length: 4000 }, (_, index) => ({ ...other, kid: `other-${index}` }));
    provider.publish({ keys: [...others, publicJwk(last)] });
    const token = await provider.token({}, { alg: 'ES256', kid: last.kid, key: last.privateKey });
    expect(await overHttp(`Bearer ${token}`)).toMatchObject({ status: 200, data: { __typename: 'Query' } });
  });
});
