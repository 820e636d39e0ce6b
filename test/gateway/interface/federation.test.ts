import { startTestGateway } from '../../support/gateway.js';

const entities = `query ($representations: [_Any!]!) {
  _entities(representations: $representations) {
    __typename
    ... on Taxpayer { id token { status } }
    ... on TaxpayerToken { taxpayerId status }
    ... on RefreshJob { taxpayerId jobId jobStatus: status }
  }
}`;

const gateway = await startTestGateway();

describe('as a subgraph', () => {
  beforeEach(() => gateway.sandbox.resetCounters());

  it('publishes an SDL with the keys, costs and cache hints that routers act on', async () => {
    const { data } = await gateway.query<{ _service: { sdl: string } }>('{ _service { sdl } }');
    expect(data?._service.sdl.match(/^type (?!Query|Mutation|Subscription|_).*(?= {)/gm)).toEqual([
      'type RefreshJob @key(fields: "taxpayerId jobId") @cost(weight: 20) @cacheControl(maxAge: 0, scope: PRIVATE)',
      'type Taxpayer @key(fields: "id") @cacheControl(maxAge: 0, scope: PRIVATE)',
      'type TaxpayerToken @key(fields: "taxpayerId") @cost(weight: 10) @cacheControl(maxAge: 0, scope: PRIVATE)',
      'type CreateClientLinkPayload @cacheControl(maxAge: 0, scope: PRIVATE)',
      'type ClientLink @key(fields: "id", resolvable: false) @cacheControl(maxAge: 0, scope: PRIVATE)',
    ]);
  });

  it('resolves 50 representations with at most one call per distinct key', async () => {
    const ids = gateway.sandbox.addTaxpayers(3, { status: 'AUTHORIZED' });
    const jobs = ids.map((taxpayerId) => gateway.sandbox.addJob({ taxpayerId, status: 'completed' }));
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
      expect(gateway.sandbox.tokenCalls(id)).toBe(1);
      expect(gateway.sandbox.jobCalls(id, jobs[n]?.jobId ?? '')).toBe(1);
    }
  });

  it('answers for the representations it can, each with its own error where it cannot', async () => {
    const { id } = gateway.sandbox.addTaxpayer({ status: 'CREATED' });
    const representations = [
      { __typename: 'TaxpayerToken', taxpayerId: 'nobody' },
      { __typename: 'TaxpayerToken', taxpayerId: id },
      { __typename: 'RefreshJob', taxpayerId: id, jobId: 7 },
      { __typename: 'ClientLink', id: '1' },
    ];
    const { data, errors } = await gateway.query(entities, { representations });
    expect(data).toEqual({
      _entities: [null, { __typename: 'TaxpayerToken', taxpayerId: id, status: 'CREATED' }, null, null],
    });
    expect(Object.fromEntries(errors?.map(({ path, extensions }) => [path?.[1], extensions.code]) ?? [])).toEqual({
      0: 'NOT_FOUND',
      2: 'BAD_USER_INPUT',
      3: 'BAD_USER_INPUT',
    });
  });
});
