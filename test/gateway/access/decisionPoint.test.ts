import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { startTestDecisionPoint } from '../../support/decisionPoint.js';
import {
  type Answer,
  codesOf,
  linesWith,
  startTestGateway,
  startTrustedProvider,
  type Texts,
} from '../../support/gateway.js';
import { schema } from '../../support/schema.js';
import { pathsOf } from '../../support/schemaPaths.js';
import { scratch } from '../../support/scratch.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

// Tokens of these callers list no taxpayer: whom they may see is known to the decision point alone.

const everyScope = 'client-links:create taxpayers:read taxpayer-tokens:read refresh-jobs:read';
const many = times(5000, (n) => `taxpayer-${n}`);
const token = 'planted-decision-token';
const claims = { tenant: 'acme', groups: ['a', 'b'] };

const [provider, point] = await Promise.all([startTrustedProvider(), startTestDecisionPoint()]);
const gateway = await startTestGateway({
  ...provider.env,
  AUTH_DECISION_URL: point.url,
  AUTH_DECISION_TOKEN: token,
  AUTH_DECISION_CLAIMS: 'tenant,groups,absent,office.city',
  TOKEN_BUDGET_PER_HOUR: '0',
});
for (const id of many.slice(0, 200)) {
  gateway.sandbox.addTaxpayer({ id, name: `Name of ${id}` });
  gateway.sandbox.addJob({ taxpayerId: id, jobId: 'job', status: 'completed' });
}

/** A caller of each test's own, for whom nothing is remembered. */
let subject: string;
let headers: Texts;
let callers = 0;
beforeEach(async () => {
  subject = `caller ${++callers}`;
  headers = await headersOf();
  point.asked.length = 0;
  gateway.sandbox.resetCounters();
});
afterEach(() => {
  jest.useRealTimers();
});

describe('A caller whose token lists no taxpayer', () => {
  it('sees those that the decision point allows, and no other, alike whether it exists', async () => {
    const allowed = many[1] as string;
    point.allow(subject, [allowed]);
    expect((await read(allowed)).data).toEqual({ taxpayerToken: { name: `Name of ${allowed}` } });
    gateway.sandbox.resetCounters();
    for (const id of [many[2], 'missing']) {
      const answer = await read(id);
      expect(codesOf(answer)).toEqual(['FORBIDDEN']);
      expect(answer.errors?.[0]?.message).toBe('You do not have access to this taxpayer');
    }
    expect(gateway.sandbox.requests()).toEqual([]);
    expect(linesWith(gateway.logs, { audit: 'access-denied' }).at(-1)).toMatchObject({
      outcome: 'denied',
      reason: 'decision point: denied',
      callerKind: 'bearer',
    });
  });

  it('is asked about by the AuthZEN API: subject, claims, action and taxpayer', async () => {
    point.allow(subject, many);
    const answer = await read(many[3]);
    expect(codesOf(answer)).toEqual([]);
    expect(point.asked).toEqual([
      {
        url: '/pdp/access/v1/evaluation',
        headers: expect.objectContaining({
          'content-type': 'application/json',
          authorization: `Bearer ${token}`,
          'x-request-id': answer.headers.get('x-request-id'),
        }),
        body: {
          subject: {
            type: 'user',
            id: subject,
            properties: { issuer: provider.issuer, ...claims, 'office.city': 'Bern' },
          },
          action: { name: 'taxpayers:read' },
          resource: { type: 'taxpayer', id: many[3] },
        },
      },
    ]);
  });

  it('may have 5,000 taxpayers: fifty aliases cost one call for each action that their fields need, and the next request none', async () => {
    point.allow(subject, many);
    const fifty = many.slice(100, 150); // read by no test before
    const names = fifty.map((id, n) => `a${n}: taxpayerToken(taxpayerId: "${id}") { name accessToken }`);
    const query = `{ ${names.join(' ')} }`;
    for (let time = 0; time < 3; time += 1) {
      const answer = await gateway.query<Record<string, { name: string }>>(query, {}, headers);
      expect(codesOf(answer)).toEqual([]);
      expect(Object.values(answer.data ?? {}).map(({ name }) => name)).toEqual(fifty.map((id) => `Name of ${id}`));
    }
    expect(point.asked.map(({ url }) => url)).toEqual(Array(2).fill('/pdp/access/v1/evaluations'));
    const questions = point.asked.map(({ body }) =>
      body.evaluations?.map(({ action, resource }) => `${action.name} ${resource.id}`),
    );
    const expected = ['taxpayers:read', 'taxpayer-tokens:read'].map((action) => fifty.map((id) => `${action} ${id}`));
    expect(questions).toEqual(expected);
  });

  it('is asked about each action that the schema publishes for a path', async () => {
    const id = many[20] as string;
    const paths = pathsOf(schema).filter(({ isOfTaxpayer }) => isOfTaxpayer);
    for (const [n, { operation, document, variables, scopes }] of paths.entries()) {
      if (operation !== 'query') continue;
      point.asked.length = 0;
      const onPath = `${subject} on path ${n}`;
      point.allow(onPath, many);
      const answer = await gateway.query(document, variables(id), await headersOf({}, onPath));
      expect([document, ...codesOf(answer)]).toEqual([document]);
      const actions = point.asked.map(({ body }) => body.action?.name);
      expect([document, ...actions]).toEqual(expect.arrayContaining([document, ...scopes]));
    }
  });

  it('gets 200 entities for one call', async () => {
    point.allow(subject, many.slice(0, 199));
    const query = 'query($r: [_Any!]!) { _entities(representations: $r) { ... on Taxpayer { id } } }';
    const representations = many.slice(0, 200).map((id) => ({ __typename: 'Taxpayer', id }));
    const answer = await gateway.query<{ _entities: unknown[] }>(query, { r: representations }, headers);
    expect(answer.data?._entities.filter((entity) => entity !== null)).toHaveLength(199);
    expect(answer.errors).toMatchObject([{ path: ['_entities', 199], extensions: { code: 'FORBIDDEN' } }]);
    expect(point.asked).toHaveLength(1);
  });

  it('is asked about once by requests that come at once', async () => {
    point.allow(subject, many);
    const release = point.hold();
    const answers = Promise.all(times(20, () => read(many[5])));
    await until(() => point.asked.length > 0);
    release();
    for (const answer of await answers) expect(codesOf(answer)).toEqual([]);
    expect(point.asked).toHaveLength(1);
  });

  it('is asked about anew for another subject, claim or action, but for no other operation', async () => {
    const first = subject;
    point.allow(subject, many);
    await read(many[6]);
    await gateway.query('query($id: ID!) { taxpayer(id: $id) { id } }', { id: many[6] }, headers);
    headers = await headersOf({ tenant: 'other' });
    await read(many[6]);
    subject = `${subject} too`;
    headers = await headersOf();
    expect(codesOf(await read(many[6]))).toEqual(['FORBIDDEN']);
    expect(point.asked.map(({ body }) => [body.subject.id, body.subject.properties['tenant']])).toEqual([
      [first, 'acme'],
      [first, 'other'],
      [subject, 'acme'],
    ]);
  });

  it('is asked about again five seconds after a refusal, however long a permission counts', async () => {
    const id = many[10] as string;
    expect(codesOf(await read(id))).toEqual(['FORBIDDEN']);
    point.allow(subject, [id]);
    await until(async () => codesOf(await read(id)).length === 0, 10_000);
    expect(point.asked).toHaveLength(2);
  });
});

it('The decision point is asked 32 questions at once for one caller, whose others wait, and about others all the same', async () => {
  const ids = gateway.sandbox.addTaxpayers(40); // read by no test before
  const other = `${subject} too`;
  point.allow(subject, ids);
  point.allow(other, ids);
  const release = point.hold();
  // A busy machine takes longer for so many requests than the decision point has for an answer.
  jest.useFakeTimers({
    doNotFake: ['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'setInterval'],
  });
  const answers = ids.map((id) => read(id));
  await until(() => point.asked.length === 32);
  answers.push(read(ids[0], await headersOf({}, other)));
  await until(() => point.asked.length === 33);
  expect(point.asked[32]?.body.subject.id).toBe(other);
  release();
  expect((await Promise.all(answers)).flatMap(codesOf)).toEqual([]);
});

describe('The decision point is not asked', () => {
  it.each<[string, object, string[], string?]>([
    ['about a taxpayer that the token lists', { taxpayer_ids: [many[9]] }, []],
    ['about a caller who may see any', { scope: `${everyScope} taxpayers:any` }, []],
    ['about an action whose scope the caller lacks', { scope: 'refresh-jobs:read' }, ['FORBIDDEN']],
    ['about an id that cannot be one', {}, ['BAD_USER_INPUT'], 'a/b'],
  ])('%s', async (_, more, codes, id = many[9]) => {
    point.allow(subject, []);
    headers = await headersOf(more);
    expect(codesOf(await read(id))).toEqual(codes);
    expect(point.asked).toEqual([]);
  });
});

it('The token for the decision point follows its file; one that cannot be one is refused, and the one in use stays', async () => {
  const directory = scratch();
  const file = join(directory, 'token');
  writeFileSync(file, 'Basic dXNlcjpwYXNz\n');
  const other = await startTestGateway({
    ...provider.env,
    AUTH_DECISION_URL: point.url,
    AUTH_DECISION_TOKEN_FILE: file,
  });

  let asked = 0;
  const presented = async () => {
    const query = `{ taxpayerToken(taxpayerId: "asked-${++asked}") { name } }`;
    await other.query(query, {}, headers);
    return point.asked.at(-1)?.headers.authorization;
  };
  expect(await presented()).toBe('Basic dXNlcjpwYXNz');
  writeFileSync(file, 'two\nlines');
  await until(() => other.output().includes('a changed file cannot be used'));
  expect(await presented()).toBe('Basic dXNlcjpwYXNz');
  writeFileSync(file, 'another-credential');
  await until(() => other.output().includes('a changed file was read again'));
  expect(await presented()).toBe('Bearer another-credential');
  expect(other.output()).not.toMatch(/dXNlcjpwYXNz|another-credential/);
});

async function headersOf(more: object = {}, sub = subject) {
  const signed = await provider.token({ sub, scope: everyScope, ...claims, office: { city: 'Bern' }, ...more });
  return { authorization: `Bearer ${signed}` };
}

function read(id: string | undefined, by = headers): Promise<Answer<{ taxpayerToken: { name: string } }>> {
  return gateway.query('query($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }', { id }, by);
}
