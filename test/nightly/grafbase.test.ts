import { beforeAll, describe, expect, it } from '@jest/globals';
import type { TrustedProvider } from '../support/authenticated.js';
import { postQuery, type TestGateway } from '../support/gateway.js';
import { startGrafbase } from './support/grafbase.js';
import {
  type Ask,
  crossing,
  expectCrossing,
  expectSubscription,
  routerSecret,
  type Subgraphs,
  startSubgraphs,
} from './support/supergraph.js';

describe('through Grafbase, with the token of the caller', () => {
  let subgraphs: Subgraphs;
  let provider: TrustedProvider;
  let gateway: TestGateway;
  let one: Subgraphs['one'];
  let router: Awaited<ReturnType<typeof startGrafbase>>;
  const token = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status accessToken } }';

  beforeAll(async () => {
    subgraphs = await startSubgraphs({ RATE_LIMIT_PER_MINUTE: '60', MAX_ALIASES: '8' });
    ({ provider, gateway, one } = subgraphs);
    router = await startGrafbase(subgraphs.addresses, { FEDERATION_SHARED_SECRET: routerSecret });
  }, 180_000);

  const ask: Ask = (query, variables, authorization) => postQuery(router.origin, query, variables, { authorization });

  it('one query crosses both subgraphs, by entities', () => expectCrossing(subgraphs, ask));

  it("what is the caller's to see is decided by us, and the error arrives with its extensions", async () => {
    const { data, errors } = await ask(crossing, { jobId: one.jobId }, await provider.watcherOf(['somebody-else']));
    expect(data).toEqual({ case: { taxpayer: { token: null }, refreshJob: null } });
    expect(errors?.map(({ path, extensions }) => [path?.join('.'), extensions.code])).toEqual(
      expect.arrayContaining([
        ['case.taxpayer', 'FORBIDDEN'],
        ['case.refreshJob', 'FORBIDDEN'],
      ]),
    );
    expect(errors?.[0]?.extensions).toMatchObject({ retryable: false, requestId: expect.any(String) });
  });

  it('a field whose scope the caller lacks is null, and the rest answers', async () => {
    const { data, errors } = await ask(token, { id: one.taxpayerId }, await provider.watcherOf([one.taxpayerId]));
    expect(data).toEqual({ taxpayerToken: { status: 'AUTHORIZED', accessToken: null } });
    expect(errors).toMatchObject([{ path: ['taxpayerToken', 'accessToken'], extensions: { code: 'FORBIDDEN' } }]);
  });

  it('bad input is refused with what was expected', async () => {
    const { errors } = await ask(token, { id: ' ' }, await provider.watcherOf([one.taxpayerId]));
    expect(errors).toMatchObject([
      { extensions: { code: 'BAD_USER_INPUT', violations: [{ path: 'taxpayerId', message: 'must not be blank' }] } },
    ]);
  });

  it('a subscription arrives as events, with fields of the other subgraph', () =>
    expectSubscription(subgraphs, router));

  it('the router replaces the body of an answer that is not 2xx: a bad token, a document and a caller beyond a limit lose their codes', async () => {
    const lost = (errors: unknown) =>
      expect(errors).toEqual([expect.objectContaining({ extensions: { code: 'SUBGRAPH_REQUEST_ERROR' } })]);
    const direct = await gateway.query(token, { id: one.taxpayerId }, { authorization: 'Bearer nonsense' });
    expect([direct.status, direct.errors?.[0]?.extensions.code]).toEqual([401, 'UNAUTHENTICATED']);
    const refused = await ask(token, { id: one.taxpayerId }, 'Bearer nonsense');
    expect(refused.status).toBe(200);
    lost(refused.errors);
    const authorization = await provider.watcherOf([one.taxpayerId]);
    const aliases = Array.from({ length: 9 }, (_, n) => `a${n}: taxpayer(id: "y${n}") { id }`).join(' ');
    lost((await ask(`{ ${aliases} }`, {}, authorization)).errors);
    // Different ones, because the router asks once for equal requests at a time.
    const several = Array.from({ length: 80 }, (_, n) => ask(`{ taxpayer(id: "x${n}") { id } }`, {}, authorization));
    const answers = await Promise.all(several);
    lost(answers.find(({ errors }) => errors?.[0]?.extensions.code === 'SUBGRAPH_REQUEST_ERROR')?.errors);
    expect((await gateway.query(token, { id: one.taxpayerId }, { authorization })).status).toBe(429);
  });
});
