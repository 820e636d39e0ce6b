import { readFileSync } from 'node:fs';
import { findCanaries } from '../../support/canaries.js';
import { startCollector } from '../../support/collector.js';
import { type Misbehaviour, misbehaviours, startTestDecisionPoint } from '../../support/decisionPoint.js';
import { environmentFor, postQuery, spawnGateway, startTrustedProvider, type Texts } from '../../support/gateway.js';
import { startSandbox } from '../../support/sandbox.js';
import { postEvents, streamReader } from '../../support/streamReader.js';

// What the gateway tells a decision point, and what that says, is confidential: none of it may be anywhere else.

const canaries = {
  'credential of the decision point': 'CanaryDecisionQ7rT2wX9',
  'taxpayer id': 'CanaryTaxpayerV9cD2s',
  'subject of the caller': 'CanarySubjectX2xC5v',
  'claim of the caller': 'CanaryTenantB4nM8kL1',
  'what the decision point says': 'CanarySaysN9bM3q',
};

it('finds nothing confidential in what the gateway wrote', async () => {
  const [provider, point, collector, sandbox] = await Promise.all([
    startTrustedProvider(),
    startTestDecisionPoint(),
    startCollector(),
    startSandbox(),
  ]);
  const gateway = await spawnGateway({
    ...environmentFor(sandbox),
    ...provider.env,
    ...{ LOG_LEVEL: 'trace', LOG_OPERATIONS: 'all', AUDIT: 'all' },
    AUTH_DECISION_URL: point.url,
    AUTH_DECISION_TOKEN: canaries['credential of the decision point'],
    AUTH_DECISION_CLAIMS: 'tenant',
    AUTH_DECISION_TTL_SECONDS: '1',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  });
  const told: string[] = [];

  const sub = canaries['subject of the caller'];
  const scope = 'taxpayers:read taxpayer-tokens:read';
  const token = await provider.token({ sub, scope, tenant: canaries['claim of the caller'] });
  const headers = { authorization: `Bearer ${token}` };
  const ids = (['allowed', 'other'] as const).map((label) => `${canaries['taxpayer id']}-${label}`);
  for (const id of ids) sandbox.addTaxpayer({ id, status: 'AUTHORIZED' });
  point.allow(sub, ids.slice(0, 1));
  point.say(canaries['what the decision point says']);
  const query =
    'query($a: ID!, $b: ID!) { a: taxpayerToken(taxpayerId: $a) { status } b: taxpayerToken(taxpayerId: $b) { status } }';
  const read = async () => {
    const answer = await postQuery(gateway.origin, query, { a: ids[0], b: ids[1] }, headers);
    told.push(JSON.stringify([answer, [...answer.headers]]));
  };
  await read();
  const restOfStream = await follow(gateway.origin, ids[0] ?? '', headers);
  for (const misbehaviour of Object.keys(misbehaviours) as Misbehaviour[]) {
    point.behave(misbehaviour);
    await read();
  }
  told.push(await restOfStream());
  told.push(await (await fetch(`${gateway.origin}/metrics`)).text());
  const commandLine = readFileSync(`/proc/${gateway.pid}/cmdline`);
  await gateway.stop();
  const spans = collector.requests.map(({ body }) => body).join('\n');
  const written = { told: told.join('\n'), output: gateway.output(), spans, commandLine };
  for (const [where, text] of Object.entries(written)) {
    expect({ where, found: findCanaries(text, canaries) }).toEqual({ where, found: [] });
  }
  // Otherwise the search would prove nothing.
  const seen = findCanaries(JSON.stringify(point.asked), canaries).filter((each) => each.endsWith(' as it is'));
  expect(seen).toHaveLength(4);
  expect(written.told).toContain('AUTH_UNAVAILABLE');
  expect(written.told).toContain('gateway_decision_seconds');
  expect(written.output).toContain('decision point: denied');
  expect(written.output).toContain('"outcome":"undecided"');
  expect(collector.spans.map(({ name }) => name)).toEqual(expect.arrayContaining(['evaluation', 'evaluations']));
});

/** Follows a taxpayer; what it returns gives all that was sent, once that has ended. */
async function follow(origin: string, id: string, headers: Texts) {
  const query = 'subscription($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }';
  const response = await postEvents({ origin }, { query, variables: { id } }, headers);
  const events = streamReader(response);
  return async () => {
    let text = '';
    for (let event = await events.next('\n\n'); event !== undefined; event = await events.next('\n\n')) text += event;
    return text;
  };
}
