import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestDecisionPoint, type TestDecisionPoint } from '../../support/decisionPoint.js';
import { type Answer, startTestGateway, type TestGateway } from '../../support/gateway.js';
import { metric, quickPolls } from '../../support/liveJob.js';
import { rawSocket } from '../../support/rawSocket.js';
import { eventReader } from '../../support/streamReader.js';
import { until } from '../../support/until.js';

// A right that is withdrawn at the decision point ends within AUTH_DECISION_TTL_SECONDS, wherever it was used.

const ttlMs = 1000;
const scope = 'taxpayers:read taxpayer-tokens:read refresh-jobs:read';
const record = 'query($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }';
const entity = 'query($r: [_Any!]!) { _entities(representations: $r) { ... on TaxpayerToken { name } } }';
const longPoll = 'query($id: ID!) { refreshJob(taxpayerId: $id, jobId: "job", waitSeconds: 3) { status } }';
const follow = 'subscription($id: ID!) { refreshJobUpdated(taxpayerId: $id, jobId: "job") { status } }';

let provider: TrustedProvider;
let point: TestDecisionPoint;
let gateway: TestGateway;
let count = 0;
let subject: string;
let id: string;
let headers: Readonly<Record<string, string>>;

beforeAll(async () => {
  [provider, point] = await Promise.all([startTrustedProvider(), startTestDecisionPoint()]);
  const timing = { ...quickPolls, AUTH_DECISION_TTL_SECONDS: String(ttlMs / 1000) };
  gateway = await startTestGateway({ ...provider.env, ...timing, AUTH_DECISION_URL: point.url });
});
afterAll(async () => {
  await gateway?.stop();
  await Promise.all([point?.stop(), provider?.stop()]);
});
beforeEach(async () => {
  count += 1;
  subject = `caller ${count}`;
  id = `taxpayer-${count}`;
  gateway.sandbox.control.addTaxpayer({ id, name: `Name of ${id}`, status: 'AUTHORIZED' });
  gateway.sandbox.control.addJob({ taxpayerId: id, jobId: 'job', endsAs: null });
  gateway.sandbox.control.resetCounters();
  point.allow(subject, [id]);
  headers = { authorization: `Bearer ${await provider.token({ sub: subject, scope })}` };
});

describe('A right that is withdrawn has ended once the time of the decision is over', () => {
  it('for queries, also of what is cached', async () => {
    for (const _ of [1, 2, 3]) expect((await ask(record)).data).toEqual({ taxpayerToken: { name: `Name of ${id}` } });
    await withdraw();
    gateway.sandbox.control.resetCounters();
    expect(codesOf(await ask(record))).toEqual(['FORBIDDEN']);
    expect(gateway.sandbox.control.requests()).toEqual([]);
  });

  it('for _entities', async () => {
    const variables = { r: [{ __typename: 'TaxpayerToken', taxpayerId: id }] };
    expect((await ask(entity, variables)).data).toEqual({ _entities: [{ name: `Name of ${id}` }] });
    await withdraw();
    expect(codesOf(await ask(entity, variables))).toEqual(['FORBIDDEN']);
  });

  it('for a read that began while it held, and for those who joined it', async () => {
    const { control } = gateway.sandbox;
    control.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { gate: id } });
    const answers = [ask(record), ask(record)];
    await control.whenCalled('taxpayerToken', 1);
    await withdraw();
    control.disarmAll();
    control.release(id);
    for (const answer of await Promise.all(answers)) {
      expect(answer.data).toEqual({ taxpayerToken: null });
      expect(codesOf(answer)).toEqual(['FORBIDDEN']);
    }
  });

  it('for a query that waits for a job', async () => {
    const waiting = ask(longPoll);
    await until(async () => (await metric(gateway, 'gateway_watchers{kind="job"}')) === 1);
    await withdraw();
    gateway.sandbox.control.updateJob(id, 'job', { status: 'completed' });
    expect(codesOf(await waiting)).toEqual(['FORBIDDEN']);
  });
});

describe.each(['a WebSocket', 'an event stream'])('A stream over %s', (transport) => {
  const open = () => (transport === 'a WebSocket' ? overSocket() : overEvents());

  it('ends with FORBIDDEN within the time of a decision, also when nothing happens on it', async () => {
    const next = await open();
    expect(await next()).toMatchObject({ data: { refreshJobUpdated: { status: 'PROCESSING' } } });
    point.allow(subject, []);
    const withdrawnAt = performance.now();
    expect(codesOf((await next()) as Answer)).toEqual(['FORBIDDEN']);
    expect(performance.now() - withdrawnAt).toBeLessThan(2 * ttlMs);
    expect(await next()).toBeUndefined();
    await until(async () => (await metric(gateway, 'gateway_watchers{kind="job"}')) === 0);
  });

  it('goes on for as long as it is allowed, with one question for each time', async () => {
    const before = point.asked.length;
    const next = await open();
    expect(await next()).toMatchObject({ data: { refreshJobUpdated: { status: 'PROCESSING' } } });
    await until(() => point.asked.length - before === 3);
    gateway.sandbox.control.updateJob(id, 'job', { status: 'completed' });
    expect(await next()).toMatchObject({ data: { refreshJobUpdated: { status: 'COMPLETED' } } });
    expect(await next()).toBeUndefined();
  });

  it('ends with AUTH_UNAVAILABLE when nobody can decide any more', async () => {
    const next = await open();
    await next();
    point.behave('answers 500');
    expect(codesOf((await next()) as Answer)).toEqual(['AUTH_UNAVAILABLE']);
    expect(await next()).toBeUndefined();
    point.behave(undefined);
  });

  it('is not begun without the right, nor without a decision', async () => {
    point.allow(subject, []);
    expect(codesOf((await (await open())()) as Answer)).toEqual(['FORBIDDEN']);
    point.behave('cuts the connection');
    subject = `${subject} too`;
    headers = { authorization: `Bearer ${await provider.token({ sub: subject, scope })}` };
    expect(codesOf((await (await open())()) as Answer)).toEqual(['AUTH_UNAVAILABLE']);
    point.behave(undefined);
    await until(async () => (await metric(gateway, 'gateway_watchers{kind="job"}')) === 0);
  });
});

/** Withdraws the right, and waits until no decision of before may be gone by. */
async function withdraw(): Promise<void> {
  point.allow(subject, []);
  await wait(ttlMs);
}

async function overSocket(): Promise<() => Promise<unknown>> {
  const socket = rawSocket(gateway.origin);
  await socket.init(headers);
  socket.send({ type: 'subscribe', id: '1', payload: { query: follow, variables: { id } } });
  let read = 0;
  return async () => {
    const mine = () => socket.received.filter((message) => message.id === '1');
    await until(() => mine().length > read);
    const { type, payload } = mine()[read++] ?? {};
    if (type === 'next') return payload;
    socket.end();
    return type === 'error' ? { errors: payload } : undefined;
  };
}

async function overEvents(): Promise<() => Promise<unknown>> {
  const response = await fetch(`${gateway.origin}/graphql/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify({ query: follow, variables: { id } }),
  });
  // What is refused with a status of its own is an answer of plain HTTP.
  if (response.status !== 200) return () => response.json();
  const events = eventReader(response);
  return async () => (await events.next())?.data;
}

function ask(query: string, variables: object = { id }): Promise<Answer<Record<string, unknown>>> {
  return gateway.query(query, variables, headers);
}

function codesOf({ errors = [] }: Pick<Answer, 'errors'>): string[] {
  return errors.map(({ extensions }) => extensions.code);
}
