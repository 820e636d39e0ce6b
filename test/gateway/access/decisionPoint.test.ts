import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { boundsFor, Places } from '../../../src/admission/Places.js';
import { DecisionPoint } from '../../../src/auth/DecisionPoint.js';
import { RequestContext, type Services } from '../../../src/context/RequestContext.js';
import { identifierReader } from '../../../src/datasources/identifiers.js';
import { resolvers } from '../../../src/resolvers/index.js';
import { buildSchema } from '../../../src/schema/buildSchema.js';
import { defaultProviders } from '../../../src/schema/Provider.js';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestDecisionPoint, type TestDecisionPoint } from '../../support/decisionPoint.js';
import { type Answer, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { metric } from '../../support/liveJob.js';
import { taxpayerPaths } from '../../support/taxpayerPaths.js';
import { until } from '../../support/until.js';

// Tokens of these callers list no taxpayer: whom they may see is known to the decision point alone.

const everyScope = 'client-links:create taxpayers:read taxpayer-tokens:read refresh-jobs:read';
const many = Array.from({ length: 5000 }, (_, n) => `taxpayer-${n}`);
const token = 'planted-decision-token';
const claims = { tenant: 'acme', groups: ['a', 'b'] };

let provider: TrustedProvider;
let point: TestDecisionPoint;
let gateway: TestGateway;
/** A caller of each test's own, for whom nothing is remembered. */
let subject = 'nobody';
let headers: Readonly<Record<string, string>>;

async function start(): Promise<TestGateway> {
  const started = await startTestGateway({
    ...provider.env,
    AUTH_DECISION_URL: point.url,
    AUTH_DECISION_TOKEN: token,
    AUTH_DECISION_CLAIMS: 'tenant,groups,absent,office.city',
    TOKEN_BUDGET_PER_HOUR: '0',
  });
  for (const id of many.slice(0, 200)) {
    started.sandbox.control.addTaxpayer({ id, name: `Name of ${id}` });
    started.sandbox.control.addJob({ taxpayerId: id, jobId: 'job', status: 'completed' });
  }
  return started;
}

beforeAll(async () => {
  [provider, point] = await Promise.all([startTrustedProvider(), startTestDecisionPoint()]);
  gateway = await start();
});

afterAll(async () => {
  await gateway?.stop();
  await Promise.all([point?.stop(), provider?.stop()]);
});

let callers = 0;
beforeEach(async () => {
  subject = `caller ${++callers}`;
  headers = await headersOf();
  point.asked.length = 0;
  gateway.sandbox.control.resetCounters();
});

describe('A caller whose token lists no taxpayer', () => {
  it('sees those that the decision point allows, and no other, alike whether it exists', async () => {
    point.allow(subject, [many[1] ?? '']);
    expect((await read(many[1])).data).toEqual({ taxpayerToken: { name: `Name of ${many[1]}` } });
    gateway.sandbox.control.resetCounters();
    for (const id of [many[2], 'missing']) {
      const answer = await read(id);
      expect(codesOf(answer)).toEqual(['FORBIDDEN']);
      expect(answer.errors?.[0]?.message).toBe('You do not have access to this taxpayer');
    }
    expect(gateway.sandbox.control.requests()).toEqual([]);
    const denials = gateway.logs.map((line) => JSON.parse(line)).filter(({ audit }) => audit === 'access-denied');
    expect(denials.at(-1)).toMatchObject({ outcome: 'denied', reason: 'decision point: denied', callerKind: 'bearer' });
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

  it('has 5,000 taxpayers: fifty aliases are one call for each action that their fields need; the next request is none', async () => {
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

  it('has 200 entities for one call', async () => {
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
    const answers = Promise.all(Array.from({ length: 20 }, () => read(many[5])));
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

  it('is asked about for as many requests as come one after the other', async () => {
    point.allow(subject, many);
    for (const id of many.slice(50, 90)) expect(codesOf(await read(id))).toEqual([]);
    expect(point.asked).toHaveLength(40);
  });

  it('is asked about again five seconds after a refusal, however long a permission counts', async () => {
    const id = many[10] as string;
    expect(codesOf(await read(id))).toEqual(['FORBIDDEN']);
    point.allow(subject, [id]);
    await until(async () => codesOf(await read(id)).length === 0, 10_000);
    expect(point.asked).toHaveLength(2);
  });

  it('passes every path to a taxpayer when allowed, and none when not', async () => {
    // A gateway that no other caller has asked within the last second: beside others, so many requests in a row are refused.
    const alone = await start();
    point.allow(subject, [many[7] ?? '']);
    try {
      const schema = buildSchema({ resolvers, providers: defaultProviders });
      for (const { name, operation, document } of taxpayerPaths(schema)) {
        if (operation === 'subscription') continue; // in withdrawnRights.test.ts
        for (const [id, codes] of [
          [many[7], []],
          [many[8], ['FORBIDDEN']],
        ] as const) {
          const type = /\.\.\. on (\w+)/.exec(document)?.[1] ?? /: (\w+)$/.exec(name)?.[1];
          const representations = [{ __typename: type, id, taxpayerId: id, jobId: 'job' }];
          const answer = await alone.query(document, { taxpayerId: id, jobId: 'job', representations }, headers);
          expect({ name, codes: [...new Set(codesOf(answer))] }).toEqual({ name, codes });
        }
      }
    } finally {
      await alone.stop();
    }
  });
});

describe('The door', () => {
  /** As the gateway makes one for each request. */
  function doors() {
    const where = { url: point.url, token: undefined, tokenFile: undefined, ttlMs: 60_000 };
    const services = {
      decisions: new DecisionPoint(where),
      ids: identifierReader(64),
      places: new Places(boundsFor({ connections: 10, answerBytes: 1000 })),
    } as unknown as Services;
    /** Asks for these taxpayers in one request. */
    const together = (ids: readonly string[], key = subject) => {
      const caller = {
        kind: 'bearer',
        key,
        subject: key,
        scopes: new Set(),
        taxpayers: new Set(),
        properties: {},
        propertiesKey: key,
      };
      const facts = { caller, requestId: 'request' } as never;
      const context = new RequestContext(facts, services);
      return ids.map((id) => context.taxpayer(id, 'taxpayers:read', (taxpayer) => taxpayer.id));
    };
    return Object.assign((id: string, key?: string) => together([id], key)[0], { together });
  }

  it('asks 32 questions at once for one caller, and others are asked about all the same', async () => {
    const open = doors();
    point.allow(subject, many);
    const release = point.hold();
    point.allow(`${subject} too`, ['one']);
    const answers = [...many.slice(0, 40).map((id) => open(id)), open('one', `${subject} too`)];
    const codes = answers.map((answer) => Promise.resolve(answer).catch(({ code }: { code: string }) => code));
    await until(() => point.asked.length === 33);
    release();
    const refused = (await Promise.all(codes)).flatMap((code, place) => (code === 'RATE_LIMITED' ? [place] : []));
    expect(refused).toEqual([32, 33, 34, 35, 36, 37, 38, 39]);
  });

  it('takes one place for any number of requests about one taxpayer', async () => {
    const open = doors();
    point.allow(subject, many);
    const release = point.hold();
    const ids = [...Array(40).fill(many[0]), ...many.slice(1, 32)];
    const answers = Promise.allSettled(ids.map((id) => open(id)));
    await until(() => point.asked.length === 32);
    release();
    expect(await answers).toEqual(ids.map((value) => ({ status: 'fulfilled', value })));
  });

  it('answers, of an operation that may not ask any more, what others are asking already', async () => {
    const open = doors();
    point.allow(subject, many);
    const release = point.hold();
    const asking = many.slice(0, 32).map((id) => open(id));
    const both = Promise.allSettled(open.together([many[0] ?? '', many[32] ?? '']));
    await until(() => point.asked.length === 32);
    release();
    await Promise.all(asking);
    expect(await both).toMatchObject([{ value: many[0] }, { reason: { code: 'RATE_LIMITED' } }]);
  });
});

describe('The decision point is not asked', () => {
  it.each([
    ['about a taxpayer that the token lists', { taxpayer_ids: [many[9]] }, []],
    ['about a caller who may see any', { scope: `${everyScope} taxpayers:any` }, []],
    ['about an action whose scope the caller lacks', { scope: 'refresh-jobs:read' }, ['FORBIDDEN']],
  ])('%s', async (_, more, codes) => {
    point.allow(subject, []);
    headers = await headersOf(more);
    expect(codesOf(await read(many[9]))).toEqual(codes);
    expect(point.asked).toEqual([]);
  });

  it('about an id that cannot be one', async () => {
    expect(codesOf(await read('a/b'))).toEqual(['BAD_USER_INPUT']);
    expect(point.asked).toEqual([]);
  });
});

it('Calls are counted and timed; a decision that is remembered needs none', async () => {
  const calls = () => metric(gateway, 'gateway_decision_seconds_count{outcome="ok"}');
  const before = await calls();
  const { id } = gateway.sandbox.control.addTaxpayer(); // no test has read its record yet
  point.allow(subject, [id]);
  for (const each of [id, id, many[11]]) await read(each);
  expect((await calls()) - before).toBe(2);
});

it('The token for the decision point follows its file; one that cannot be one is refused, and the one in use stays', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'decision-token-'));
  const file = join(directory, 'token');
  writeFileSync(file, 'Basic dXNlcjpwYXNz\n');
  const other = await startTestGateway({
    ...provider.env,
    AUTH_DECISION_URL: point.url,
    AUTH_DECISION_TOKEN_FILE: file,
  });
  try {
    let asked = 0;
    const presented = async () => {
      const query = `{ taxpayerToken(taxpayerId: "asked-${++asked}") { name } }`;
      await other.query(query, {}, headers);
      return point.asked.at(-1)?.headers.authorization;
    };
    expect(await presented()).toBe('Basic dXNlcjpwYXNz');
    writeFileSync(file, 'two\nlines');
    await until(() => other.logs.some((line) => line.includes('the new content of a secret file cannot be used')));
    expect(await presented()).toBe('Basic dXNlcjpwYXNz');
    writeFileSync(file, 'another-credential');
    await until(() => other.logs.some((line) => line.includes('a secret was renewed from its file')));
    expect(await presented()).toBe('Bearer another-credential');
    expect(other.logs.join('')).not.toMatch(/dXNlcjpwYXNz|another-credential/);
  } finally {
    await other.stop();
    rmSync(directory, { recursive: true });
  }
});

async function headersOf(more: object = {}, sub = subject) {
  const signed = await provider.token({ sub, scope: everyScope, ...claims, office: { city: 'Bern' }, ...more });
  return { authorization: `Bearer ${signed}` };
}

function read(id: string | undefined, by = headers): Promise<Answer<{ taxpayerToken: { name: string } }>> {
  return gateway.query('query($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }', { id }, by);
}

function codesOf({ errors = [] }: Pick<Answer, 'errors'>): string[] {
  return errors.map(({ extensions }) => extensions.code);
}
