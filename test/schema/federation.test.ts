import { ApolloGateway, RemoteGraphQLDataSource } from '@apollo/gateway';
import { ApolloServer } from '@apollo/server';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startCases } from '../../examples/supergraph/casesSubgraph.js';
import { composeSupergraph } from '../../examples/supergraph/composeSupergraph.js';
import { startTrustedProvider, type TrustedProvider } from '../support/authenticated.js';
import { type Answer, postQuery, startTestGateway, type TestGateway } from '../support/gateway.js';
import { startHiveGateway } from '../support/hiveGateway.js';
import { quickPolls } from '../support/liveJob.js';
import { eventReader } from '../support/streamReader.js';

const secret = 'a-secret-of-the-router';
const entities = `query ($representations: [_Any!]!) {
  _entities(representations: $representations) {
    __typename
    ... on Taxpayer { id token { status } }
    ... on TaxpayerToken { taxpayerId status }
    ... on RefreshJob { taxpayerId jobId jobStatus: status }
  }
}`;

describe('as a subgraph', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
  });

  afterAll(() => gateway.stop());

  beforeEach(() => gateway.sandbox.control.resetCounters());

  it('publishes an SDL with the keys, scopes, tags, costs and cache hints that routers act on', async () => {
    const { data } = await gateway.query<{ _service: { sdl: string } }>('{ _service { sdl } }');
    const sdl = (data?._service.sdl ?? '').replace(/\s+/g, ' ');
    for (const part of [
      '@link(url: "https://specs.apollo.dev/federation/v2.9"',
      'type Taxpayer @key(fields: "id") @cacheControl(maxAge: 0, scope: PRIVATE)',
      'type TaxpayerToken @key(fields: "taxpayerId") @cost(weight: 10) @cacheControl(maxAge: 0, scope: PRIVATE)',
      'type RefreshJob @key(fields: "taxpayerId jobId") @cost(weight: 20) @cacheControl(maxAge: 0, scope: PRIVATE)',
      'type ClientLink @key(fields: "id", resolvable: false)',
      'accessToken: String @authenticated @requiresScopes(scopes: [["taxpayer-tokens:read"]]) @tag(name: "sensitive")',
      'RefreshJob! @authenticated @requiresScopes(scopes: [["refresh-jobs:read"]])',
      'ssn: String @tag(name: "personal-data")',
    ]) {
      expect(sdl).toContain(part);
    }
  });

  it('resolves 50 representations with at most one call per distinct key', async () => {
    const ids = gateway.sandbox.control.addTaxpayers(3, { status: 'AUTHORIZED' });
    const jobs = ids.map((taxpayerId) => gateway.sandbox.control.addJob({ taxpayerId, status: 'completed' }));
    const representations = Array.from({ length: 50 }, (_, n) => {
      const taxpayerId = ids[n % 3];
      const ofKind = [
        { __typename: 'Taxpayer', id: taxpayerId },
        { __typename: 'TaxpayerToken', taxpayerId },
        { __typename: 'RefreshJob', taxpayerId, jobId: jobs[n % 3]?.jobId },
      ];
      return ofKind[Math.floor(n / 3) % 3];
    });
    const { data, errors } = await gateway.query<{ _entities: unknown[] }>(entities, { representations });
    expect(errors).toBeUndefined();
    expect(data?._entities).toHaveLength(50);
    expect(data?._entities.slice(0, 9)).toEqual([
      ...ids.map((id) => ({ __typename: 'Taxpayer', id, token: { status: 'AUTHORIZED' } })),
      ...ids.map((taxpayerId) => ({ __typename: 'TaxpayerToken', taxpayerId, status: 'AUTHORIZED' })),
      ...jobs.map(({ taxpayerId, jobId }) => ({ __typename: 'RefreshJob', taxpayerId, jobId, jobStatus: 'COMPLETED' })),
    ]);
    for (const [n, id] of ids.entries()) {
      expect(gateway.sandbox.control.tokenCalls(id)).toBe(1);
      expect(gateway.sandbox.control.jobCalls(id, jobs[n]?.jobId ?? '')).toBe(1);
    }
  });

  it('answers for the representations it can, each with its own error where it cannot', async () => {
    const [id] = gateway.sandbox.control.addTaxpayers(1, { status: 'CREATED' });
    const representations = [
      { __typename: 'TaxpayerToken', taxpayerId: 'nobody' },
      { __typename: 'TaxpayerToken', taxpayerId: id },
      { __typename: 'RefreshJob', taxpayerId: id, jobId: 7 },
    ];
    const { data, errors } = await gateway.query(entities, { representations });
    expect(data).toEqual({
      _entities: [null, { __typename: 'TaxpayerToken', taxpayerId: id, status: 'CREATED' }, null],
    });
    expect(errors?.map(({ path, extensions }) => [path?.[1], extensions.code])).toEqual(
      expect.arrayContaining([
        [0, 'NOT_FOUND'],
        [2, 'BAD_USER_INPUT'],
      ]),
    );
  });

  it.each([
    ['another subgraph', { __typename: 'Case', id: '1' }],
    ['nobody', { __typename: 'ClientLink', id: '1' }],
    ['no name', { id: '1' }],
    ['a number', 7],
  ])('refuses an entity of %s, and survives that another one fails at the same time', async (_, representation) => {
    const failing = { __typename: 'TaxpayerToken', taxpayerId: 'nobody-else' };
    const { errors } = await gateway.query(entities, { representations: [failing, representation] });
    expect(errors?.map(({ extensions }) => extensions.code)).toContain('BAD_USER_INPUT');
    expect(await gateway.query('{ __typename }')).toMatchObject({ status: 200 });
  });
});

describe('behind a router, with the token of the caller', () => {
  let provider: TrustedProvider;
  let gateway: TestGateway;
  let cases: Awaited<ReturnType<typeof startCases>>;
  let hive: Awaited<ReturnType<typeof startHiveGateway>>;
  let apollo: ApolloServer<{ authorization: string }>;
  const one = { id: '1', title: 'First', taxpayerId: '', jobId: '' };
  const crossing = `query ($jobId: ID!) {
    case(id: "1") { taxpayer { token { status } refreshJob(jobId: $jobId) { status } } refreshJob { name } }
  }`;

  beforeAll(async () => {
    provider = await startTrustedProvider();
    gateway = await startTestGateway({ ...provider.env, ...quickPolls, FEDERATION_SHARED_SECRET: secret });
    const { id } = gateway.sandbox.control.addTaxpayer({ status: 'AUTHORIZED' });
    const { jobId } = gateway.sandbox.control.addJob({ taxpayerId: id, endsAs: null, name: 'A refresh' });
    Object.assign(one, { taxpayerId: id, jobId });
    cases = await startCases({ cases: [one] });
    const addresses = { taxpayersUrl: `${gateway.origin}/graphql`, casesUrl: cases.url };
    hive = await startHiveGateway(composeSupergraph(addresses), { FEDERATION_SHARED_SECRET: secret });
    apollo = new ApolloServer({
      gateway: new ApolloGateway({
        supergraphSdl: composeSupergraph(addresses, { scopes: false }),
        buildService: ({ url = '' }) =>
          new RemoteGraphQLDataSource<{ authorization: string }>({
            url,
            willSendRequest: ({ request, context }) => {
              request.http?.headers.set('x-gateway-router-secret', secret);
              if (context.authorization) request.http?.headers.set('authorization', context.authorization);
            },
          }),
      }),
    });
    await apollo.start();
  }, 90_000);

  afterAll(async () => {
    await Promise.all([hive.stop(), apollo.stop()]);
    await cases.stop();
    await gateway.stop();
    await provider.stop();
  });

  async function throughApollo(query: string, variables: object, authorization: string): Promise<Partial<Answer>> {
    const request = { query, variables: { ...variables } };
    const { body } = await apollo.executeOperation(request, { contextValue: { authorization } });
    return body.kind === 'single' ? (JSON.parse(JSON.stringify(body.singleResult)) as Partial<Answer>) : {};
  }

  const throughHive = (query: string, variables: object, authorization: string): Promise<Partial<Answer>> =>
    postQuery(hive.origin, query, variables, { authorization });

  it.each([
    ['Apollo Gateway', throughApollo],
    ['Hive Gateway', throughHive],
  ])('one query crosses both subgraphs through %s', async (_, ask) => {
    const authorization = await provider.watcherOf([one.taxpayerId]);
    const { data, errors } = await ask(crossing, { jobId: one.jobId }, authorization);
    expect([data, errors]).toEqual([
      {
        case: {
          taxpayer: { token: { status: 'AUTHORIZED' }, refreshJob: { status: 'PROCESSING' } },
          refreshJob: { name: 'A refresh' },
        },
      },
      undefined,
    ]);
  });

  it.each([
    ['Apollo Gateway', throughApollo],
    ['Hive Gateway', throughHive],
  ])("what is the caller's to see is decided by us, through %s as well", async (_, ask) => {
    const authorization = await provider.watcherOf(['somebody-else']);
    const { data, errors } = await ask(crossing, { jobId: one.jobId }, authorization);
    expect(JSON.stringify(data)).not.toContain('AUTHORIZED');
    expect(errors?.map(({ extensions }) => extensions.code)).toContain('FORBIDDEN');
  });

  it('a subscription passes through Hive Gateway to us, with fields of the other subgraph', async () => {
    const query = `subscription ($taxpayerId: ID!, $jobId: ID!) {
      refreshJobUpdated(taxpayerId: $taxpayerId, jobId: $jobId) { status taxpayer { cases { title } } }
    }`;
    const response = await fetch(`${hive.origin}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        authorization: await provider.watcherOf([one.taxpayerId]),
      },
      body: JSON.stringify({ query, variables: { taxpayerId: one.taxpayerId, jobId: one.jobId } }),
    });
    const events = eventReader(response);
    const seen = (status: string) => ({
      event: 'next',
      data: { data: { refreshJobUpdated: { status, taxpayer: { cases: [{ title: 'First' }] } } } },
    });
    expect(await events.next()).toEqual(seen('PROCESSING'));
    gateway.sandbox.control.updateJob(one.taxpayerId, one.jobId, { status: 'completed' });
    expect(await events.next()).toEqual(seen('COMPLETED'));
    expect(await events.next()).toMatchObject({ event: 'complete' });
  });

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
    const asRouter = await gateway.query('{ _service { sdl } }', {}, { 'x-gateway-router-secret': secret });
    expect(asRouter.errors).toBeUndefined();
  });
});
