import { type Misbehaviour, misbehaviours, startTestDecisionPoint } from '../../support/decisionPoint.js';
import { startTestGateway, startTrustedProvider, type Texts } from '../../support/gateway.js';
import { until } from '../../support/until.js';

// Whatever the decision point does, nobody is let in by mistake, the answer comes in time, and callers whose token lists the
// taxpayer notice nothing.

/** The promise: a second for the decision point. The rest is for a busy machine. */
const withinMs = 5000;

let subject: string;
let headers: Texts;
let callers = 0;
const [one, two] = ['taxpayer-one', 'taxpayer-two'];

const [provider, point] = await Promise.all([startTrustedProvider(), startTestDecisionPoint()]);
const gateway = await startTestGateway({ ...provider.env, AUTH_DECISION_URL: point.url });
for (const id of [one, two]) gateway.sandbox.addTaxpayer({ id, name: `Name of ${id}` });
beforeEach(async () => {
  subject = `caller ${++callers}`;
  point.allow(subject, [one, two]);
  headers = await headersOf(subject);
});
afterEach(() => point.behave(undefined));

const single = '{ taxpayerToken(taxpayerId: "taxpayer-one") { name } }';
const both =
  '{ a: taxpayerToken(taxpayerId: "taxpayer-one") { name } b: taxpayerToken(taxpayerId: "taxpayer-two") { name } }';

const faults: readonly (readonly [string, () => unknown])[] = [
  ['is down', () => point.down()],
  ...(Object.keys(misbehaviours) as Misbehaviour[]).map((name) => [name, () => point.behave(name)] as const),
];

describe.each(faults)('A decision point that %s', (_, begin) => {
  beforeEach(async () => void (await begin()));
  afterEach(() => point.up());

  it.each([
    ['one', single],
    ['several', both],
  ])('lets nobody see %s: AUTH_UNAVAILABLE, 503, in time', async (_, query) => {
    gateway.sandbox.resetCounters();
    const startedAt = performance.now();
    const answer = await gateway.query(query, {}, headers);
    expect(performance.now() - startedAt).toBeLessThan(withinMs);
    expect(answer).toMatchObject({
      status: 503,
      errors: [{ extensions: { code: 'AUTH_UNAVAILABLE', retryable: true, retryAfterSeconds: 1 } }],
    });
    expect(answer.data).toBeUndefined();
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(gateway.sandbox.requests()).toEqual([]);
  });

  it('spoils no more of an operation than what it was asked about: nothing of a taxpayer whom the token lists', async () => {
    const answer = await gateway.query(both, {}, await headersOf(subject, [two]));
    expect(answer).toMatchObject({
      status: 200,
      data: { a: null, b: { name: `Name of ${two}` } },
      errors: [{ path: ['a'], extensions: { code: 'AUTH_UNAVAILABLE' } }],
    });
  });

  it('is believed again as soon as it works', async () => {
    await gateway.query(single, {}, headers);
    point.behave(undefined);
    await point.up();
    expect(await gateway.query(single, {}, headers)).toMatchObject({ status: 200, data: { taxpayerToken: {} } });
  });
});

it('What is not decided is audited, with the reason; one line tells that it begins, and one that it is over', async () => {
  point.behave('answers 500');
  await gateway.query(single, {}, headers);
  const lines = gateway.logs.map((line) => JSON.parse(line) as Record<string, unknown>);
  const why = { audit: 'access-denied', outcome: 'undecided', reason: 'decision point: HTTP 500' };
  expect(lines).toContainEqual(expect.objectContaining(why));
  const calls = [{ endpoint: 'evaluation', ms: expect.any(Number), outcome: expect.any(String) }];
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'operation', calls }));
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'the decision point cannot decide', cause: 'HTTP 500' }));
  point.behave(undefined);
  // The first success five seconds after the last failure ends it.
  await until(async () => {
    await gateway.query(`{ taxpayerToken(taxpayerId: "${crypto.randomUUID()}") { status } }`, {}, headers);
    return gateway.output().includes('the decision point decides again');
  });
});

it('Each kind of failure is counted as what it is', async () => {
  for (const how of ['cuts the connection', 'does not answer', 'redirects', undefined] as const) {
    point.behave(how);
    await gateway.query(single, {}, headers);
  }
  const metrics = await (await fetch(`${gateway.origin}/metrics`)).text();
  const met = [...metrics.matchAll(/^gateway_decision_seconds_count\{.*outcome="([^"]+)"/gm)].map(
    ([, outcome]) => outcome,
  );
  expect(new Set(met)).toEqual(new Set(['invalid', 'network', 'ok', 'server-error', 'timeout']));
});

/** Of a caller whose token lists these taxpayers. */
async function headersOf(sub: string, taxpayers: readonly string[] = []) {
  const token = await provider.token({ sub, scope: 'taxpayers:read', taxpayer_ids: taxpayers });
  return { authorization: `Bearer ${token}` };
}
