import { executions } from '../../support/executions.js';
import {
  environmentFor,
  post,
  postQuery,
  spawnGateway,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
} from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';
import { times } from '../../support/times.js';

// A short document can ask for very much, through fragments, aliases and representations.

const recordFields = 'taxpayerId name status provider providerId createdAt metadata fetchedAt stale';
const aliased = (count: number) => times(count, (n) => `a${n}: token { ...T }`).join(' ');
const entities = (aliases: number, more = '') => `query Q($r: [_Any!]!) { _entities(representations: $r) {
  ... on RefreshJob { status } ... on Taxpayer { ${aliased(aliases)} }
} ${more} } fragment T on TaxpayerToken { ${recordFields} }`;

describe('the fields of an operation', () => {
  let gateway: TestGateway;
  let taxpayers: (count: number) => { readonly r: readonly object[] };

  beforeAll(async () => {
    gateway = await startTestGateway();
    const { id } = gateway.sandbox.addTaxpayer({ status: 'AUTHORIZED' });
    taxpayers = (count) => ({ r: times(count, () => ({ __typename: 'Taxpayer', id })) });
  });

  const refusal = {
    status: 422,
    errors: [
      expect.objectContaining({
        message: 'The operation must select at most 5000 fields, counted for each representation',
        extensions: expect.objectContaining({ code: 'GRAPHQL_VALIDATION_FAILED', retryable: false }),
      }),
    ],
  };
  const graphql = { accept: 'application/graphql-response+json' };

  it('may be 5,000, also where several parts select them', async () => {
    // each representation has 50 tokens of 10 fields, and the status of a job
    const query = entities(50, '_entities(representations: $r) { __typename }');
    for (let time = 0; time < 3; time += 1) expect((await gateway.query(query, taxpayers(1))).errors).toBeUndefined();
    expect((await gateway.query(query, taxpayers(9), graphql)).errors).toBeUndefined();
    expect(await gateway.query(query, taxpayers(10), graphql)).toMatchObject(refusal);
  });

  it('are counted through fragments that spread each other', async () => {
    const levels = times(4, (n) => {
      const deeper = n === 0 ? '' : `taxpayer { ${`...on Taxpayer { token { ...T${n - 1} } } `.repeat(12)} }`;
      return `fragment T${n} on TaxpayerToken { name ${deeper} }`;
    });
    const query = `query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { ...T3 } } ${levels.join(' ')}`;
    const [taxpayer] = taxpayers(1).r;
    const few = query.replace('...T3', '...T1');
    expect((await gateway.query(few, taxpayer)).errors?.[0]?.message).not.toMatch(/at most 5000/);
    const more = `query Q($id: ID!) { ${times(20, (n) => `b${n}: taxpayerToken(taxpayerId: $id) { ...T3 }`).join(' ')} } ${levels.join(' ')}`;
    expect(await gateway.query(more, taxpayer, graphql)).toMatchObject(refusal);
  });
});

it('a document of many large operations gets no plans, which would not fit into memory', async () => {
  const gateway = await startTestGateway({ LOG_OPERATIONS: 'all' });
  const { id } = gateway.sandbox.addTaxpayer();
  const roots = times(50, (n) => `a${n}: taxpayerToken(taxpayerId: "${id}") { ...T }`).join(' ');
  const token = (deeper: string) => `${recordFields} taxpayer { id token { ${deeper} } }`;
  const large = (operations: number) => {
    const all = times(operations, (n) => `query Q${n} { ...R }`).join(' ');
    return `${all} fragment R on Query { ${roots} } fragment T on TaxpayerToken { ${token(token(recordFields))} }`;
  };
  const planned = async (query: string) => {
    const before = executions(gateway.output(), 'plan');
    for (let time = 0; time < 3; time += 1) {
      const answer = await post(`${gateway.origin}/graphql`, { query, operationName: 'Q0' });
      expect(await answer.json()).not.toHaveProperty('errors');
    }
    return executions(gateway.output(), 'plan') - before;
  };
  expect([await planned(large(1)), await planned(large(200))]).toEqual([2, 0]);
});

it('a process outlives an answer that is too large while one of its members is still awaited', async () => {
  const sandbox = await startSandbox();
  const provider = await startTrustedProvider();
  const gateway = await spawnGateway({
    ...environmentFor(sandbox),
    ...provider.env,
  });

  const { id } = sandbox.addTaxpayer({ status: 'AUTHORIZED', metadata: { note: 'x'.repeat(150_000) } });
  const { jobId } = sandbox.addJob({ taxpayerId: id, durationMs: Infinity });
  const scope = 'taxpayers:read refresh-jobs:read';
  const authorization = `Bearer ${await provider.token({ scope, taxpayer_ids: [id] })}`;
  const known = { __typename: 'Taxpayer', id };
  const job = { __typename: 'RefreshJob', taxpayerId: id, jobId };
  const ask = (r: readonly object[]) => postQuery(gateway.origin, entities(2), { r }, { authorization });
  for (let time = 0; time < 3; time += 1) expect((await ask([job, known])).errors).toBeUndefined();
  sandbox.setLatency(300);
  const awaited = { ...job, jobId: sandbox.addJob({ taxpayerId: id, durationMs: Infinity }).jobId };
  const { errors } = await ask([awaited, ...Array(60).fill(known)]);
  expect(errors?.[0]?.message).toBe('The answer must have at most 8388608 bytes');
  expect(await ask([awaited])).toMatchObject({ data: { _entities: [{ status: 'PROCESSING' }] } });
  expect((await ask([known])).errors).toBeUndefined();
  expect(gateway.child.exitCode).toBeNull();
});
