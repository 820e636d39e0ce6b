import { startTestGateway } from '../../support/gateway.js';
import { times } from '../../support/times.js';

const entities = `query ($representations: [_Any!]!) {
  _entities(representations: $representations) {
    __typename
    ... on Taxpayer { id token { status } }
    ... on TaxpayerToken { taxpayerId status }
    ... on RefreshJob { taxpayerId jobId jobStatus: status }
  }
}`;

const gateway = await startTestGateway();

describe('The gateway as a subgraph', () => {
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
    const found = [
      ...ids.map((id) => ({ __typename: 'Taxpayer', id, token: { status: 'AUTHORIZED' } })),
      ...ids.map((taxpayerId) => ({ __typename: 'TaxpayerToken', taxpayerId, status: 'AUTHORIZED' })),
      ...jobs.map(({ taxpayerId, jobId }) => ({ __typename: 'RefreshJob', taxpayerId, jobId, jobStatus: 'COMPLETED' })),
    ];
    // A router may send more than the key, for fields that another subgraph requires.
    const representations = times(50, (n) => found[n % 9]);
    const { data, errors } = await gateway.query<{ _entities: unknown[] }>(entities, { representations });
    expect([data?._entities, errors]).toEqual([representations, undefined]);
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
