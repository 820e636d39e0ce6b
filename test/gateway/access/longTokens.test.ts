import { startTestGateway, startTrustedProvider } from '../../support/gateway.js';
import { rawSocket } from '../../support/rawSocket.js';
import { times } from '../../support/times.js';

const provider = await startTrustedProvider();
const gateway = await startTestGateway(provider.env);

/** The header of a caller in so many groups, which each take 54 characters of the token. */
const memberOf = async (groups: number) =>
  `Bearer ${await provider.token({ groups: times(groups, () => crypto.randomUUID()) })}`;

const overHttp = (authorization: string) => gateway.query('{ __typename }', {}, { authorization });
async function overWebSocket(authorization: string): Promise<unknown> {
  const socket = rawSocket(gateway.origin);
  await socket.sendInit({ authorization });
  const outcome = await Promise.race([socket.message('connection_ack'), socket.closed]);
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

describe('A token that is bound', () => {
  const refusal =
    'The access token is bound to a key or a certificate (DPoP, cnf); the gateway does not support bound tokens';
  const thumbprint = 'bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2';

  it.each<[string, unknown]>([
    ['to a certificate', { 'x5t#S256': thumbprint }],
    ['to nothing, by a cnf of null', null],
  ])('%s is refused in words, over HTTP and WebSocket', async (_, cnf) => {
    const authorization = `Bearer ${await provider.token({ cnf })}`;
    expect(await overHttp(authorization)).toMatchObject({
      status: 401,
      errors: [{ message: refusal, extensions: { code: 'UNAUTHENTICATED' } }],
    });
    expect(await overWebSocket(authorization)).toEqual({ code: 4401, reason: refusal });
    expect(gateway.output()).not.toContain(thumbprint);
  });

  it('is refused in the same words when its scheme says that it is bound', async () => {
    const token = await provider.token({ cnf: { jkt: 'x' } });
    for (const scheme of ['DPoP', 'dpop']) {
      expect((await overHttp(`${scheme} ${token}`)).errors?.[0]?.message).toBe(refusal);
    }
  });
});
