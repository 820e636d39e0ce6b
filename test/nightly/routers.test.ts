import { beforeAll, describe, expect, it } from '@jest/globals';
import { composeSupergraph } from '../../examples/supergraph/composeSupergraph.js';
import type { TrustedProvider } from '../support/authenticated.js';
import { postQuery, type TestGateway } from '../support/gateway.js';
import { startApolloGateway } from './support/apollo.js';
import { startHiveGateway } from './support/hiveGateway.js';
import {
  type Ask,
  crossing,
  expectCrossing,
  expectSubscription,
  routerSecret,
  type Subgraphs,
  startSubgraphs,
} from './support/supergraph.js';

describe('behind a router, with the token of the caller', () => {
  let subgraphs: Subgraphs;
  let provider: TrustedProvider;
  let gateway: TestGateway;
  let one: Subgraphs['one'];
  let hive: Awaited<ReturnType<typeof startHiveGateway>>;
  let apollo: Awaited<ReturnType<typeof startApolloGateway>>;

  beforeAll(async () => {
    subgraphs = await startSubgraphs();
    ({ provider, gateway, one } = subgraphs);
    const { addresses } = subgraphs;
    hive = await startHiveGateway(composeSupergraph(addresses), { FEDERATION_SHARED_SECRET: routerSecret });
    apollo = await startApolloGateway(composeSupergraph(addresses, { scopes: false }), routerSecret);
  }, 90_000);

  const throughApollo: Ask = (query, variables, authorization) => apollo.ask(query, variables, authorization);

  const throughHive: Ask = (query, variables, authorization) =>
    postQuery(hive.origin, query, variables, { authorization });

  it.each([
    ['Apollo Gateway', throughApollo],
    ['Hive Gateway', throughHive],
  ])('one query crosses both subgraphs through %s', (_, ask) => expectCrossing(subgraphs, ask));

  it.each([
    ['Apollo Gateway', throughApollo],
    ['Hive Gateway', throughHive],
  ])("what is the caller's to see is decided by us, through %s as well", async (_, ask) => {
    const authorization = await provider.watcherOf(['somebody-else']);
    const { data, errors } = await ask(crossing, { jobId: one.jobId }, authorization);
    expect(JSON.stringify(data)).not.toContain('AUTHORIZED');
    expect(errors?.map(({ extensions }) => extensions.code)).toContain('FORBIDDEN');
  });

  it('a subscription passes through Hive Gateway to us, with fields of the other subgraph', () =>
    expectSubscription(subgraphs, hive));

  it("Hive Gateway's demand control prices what reaches the service", async () => {
    const authorization = await provider.watcherOf([one.taxpayerId]);
    const { taxpayerId, jobId } = one;
    const askFor = (count: number, field: string) => {
      const fields = Array.from({ length: count }, (_, n) => `a${n}: ${field}`).join(' ');
      return throughHive(`{ ${fields} }`, {}, authorization);
    };
    const job = `refreshJob(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { status }`;
    const token = `taxpayerToken(taxpayerId: "${taxpayerId}") { status }`;
    expect((await askFor(51, job)).errors?.[0]?.extensions).toMatchObject({ cost: { estimated: 51 * 20 } });
    expect((await askFor(51, token)).errors).toBeUndefined();
  });

  it('the doors of federation open to the router alone', async () => {
    const authorization = await provider.watcherOf([one.taxpayerId]);
    const direct = await gateway.query('{ _service { sdl } }', {}, { authorization });
    expect(direct.errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    const asRouter = await gateway.query('{ _service { sdl } }', {}, { 'x-gateway-router-secret': routerSecret });
    expect(asRouter.errors).toBeUndefined();
  });
});
