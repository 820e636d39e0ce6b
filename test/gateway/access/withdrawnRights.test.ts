import { setTimeout as wait } from 'node:timers/promises';
import { startTestDecisionPoint } from '../../support/decisionPoint.js';
import {
  type Answer,
  codesOf,
  quickPolls,
  startTestGateway,
  startTrustedProvider,
  type Texts,
} from '../../support/gateway.js';
import { initSocket } from '../../support/rawSocket.js';
import { eventReader, postEvents } from '../../support/streamReader.js';
import { together } from '../../support/together.js';
import { until } from '../../support/until.js';

// A right that is withdrawn at the decision point ends within AUTH_DECISION_TTL_SECONDS, wherever it was used.

const ttlMs = 1000;
const scope = 'taxpayers:read taxpayer-tokens:read refresh-jobs:read';
const record = 'query($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }';
const longPoll = 'query($id: ID!) { refreshJob(taxpayerId: $id, jobId: "job", waitSeconds: 3) { status } }';
const follow = 'subscription($id: ID!) { refreshJobUpdated(taxpayerId: $id, jobId: "job") { status } }';

const itMostlyWaits = together();

const [provider, point] = await Promise.all([startTrustedProvider(), startTestDecisionPoint()]);
const timing = { ...quickPolls, AUTH_DECISION_TTL_SECONDS: String(ttlMs / 1000) };
const gateway = await startTestGateway({ ...provider.env, ...timing, AUTH_DECISION_URL: point.url });

/** A caller, and a taxpayer with a job whom that caller may see. */
async function scene(subject: string) {
  const { sandbox } = gateway;
  const name = `Name for ${subject}`;
  const { id } = sandbox.addTaxpayer({ name, status: 'AUTHORIZED' });
  sandbox.addJob({ taxpayerId: id, jobId: 'job', durationMs: Infinity });
  point.allow(subject, [id]);
  const headers = { authorization: `Bearer ${await provider.token({ sub: subject, scope })}` };
  return {
    sandbox,
    id,
    name,
    ask: (query: string, variables: object = { id }): Promise<Answer<Record<string, unknown>>> =>
      gateway.query(query, variables, headers),
    asked: () => point.asked.filter(({ body }) => body.subject.id === subject).length,
    withdraw: () => point.allow(subject, []),
    /** Withdraws the right, and waits until no decision of before may be used any more. */
    withdrawAndWait: async () => {
      point.allow(subject, []);
      await wait(ttlMs);
    },
    open: (transport: string) => (transport === 'a WebSocket' ? overSocket(id, headers) : overEvents(id, headers)),
  };
}

describe('A right that is withdrawn has ended once the time of the decision is over', () => {
  itMostlyWaits('for queries, also of what is cached', async () => {
    const { ask, name, withdrawAndWait, sandbox, id } = await scene('who queries');
    for (const _ of [1, 2, 3]) expect((await ask(record)).data).toEqual({ taxpayerToken: { name } });
    await withdrawAndWait();
    const calls = sandbox.tokenCalls(id);
    expect(codesOf(await ask(record))).toEqual(['FORBIDDEN']);
    expect(sandbox.tokenCalls(id)).toBe(calls);
  });

  itMostlyWaits('for a read that began while it held, and for those who joined it', async () => {
    const { ask, id, sandbox, withdrawAndWait } = await scene('who joins');
    const fault = sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { gate: id } });
    const answers = [ask(record), ask(record)];
    await until(() => sandbox.tokenCalls(id) === 1);
    await withdrawAndWait();
    sandbox.disarm(fault);
    sandbox.release(id);
    for (const answer of await Promise.all(answers)) {
      expect(answer.data).toEqual({ taxpayerToken: null });
      expect(codesOf(answer)).toEqual(['FORBIDDEN']);
    }
  });

  itMostlyWaits('for a query that waits for a job', async () => {
    const { ask, id, sandbox, withdrawAndWait } = await scene('who waits');
    const waiting = ask(longPoll);
    await until(() => sandbox.jobCalls(id, 'job') > 0);
    await withdrawAndWait();
    sandbox.updateJob(id, 'job', { status: 'completed' });
    expect(codesOf(await waiting)).toEqual(['FORBIDDEN']);
  });

  it('also when the decision was long on its way: its time counts from the question', async () => {
    const { ask, name, asked, withdraw } = await scene('who is decided about slowly');
    const release = point.hold();
    const first = ask(record);
    await until(() => asked() === 1);
    const over = wait(ttlMs);
    await wait(ttlMs / 5);
    release();
    expect((await first).data).toEqual({ taxpayerToken: { name } });
    withdraw();
    await over;
    expect(codesOf(await ask(record))).toEqual(['FORBIDDEN']);
  });
});

describe.each(['a WebSocket', 'an event stream'])('A stream over %s', (transport) => {
  const processing = { data: { refreshJobUpdated: { status: 'PROCESSING' } } };

  itMostlyWaits('ends with FORBIDDEN within the time of a decision, also when nothing happens on it', async () => {
    const { open, withdraw } = await scene(`who watches by ${transport}`);
    const next = await open(transport);
    expect(await next()).toMatchObject(processing);
    withdraw();
    const withdrawnAt = performance.now();
    expect(codesOf((await next()) as Answer)).toEqual(['FORBIDDEN']);
    expect(performance.now() - withdrawnAt).toBeLessThan(2 * ttlMs);
    expect(await next()).toBeUndefined();
  });

  itMostlyWaits('goes on for as long as it is allowed, with one question for each time', async () => {
    const { open, asked, sandbox, id } = await scene(`who stays by ${transport}`);
    const next = await open(transport);
    expect(await next()).toMatchObject(processing);
    await until(() => asked() === 3);
    sandbox.updateJob(id, 'job', { status: 'completed' });
    expect(await next()).toMatchObject({ data: { refreshJobUpdated: { status: 'COMPLETED' } } });
    expect(await next()).toBeUndefined();
    const total = asked();
    await wait(1.5 * ttlMs);
    expect(asked()).toBe(total);
  });

  it('ends with AUTH_UNAVAILABLE when nobody can decide any more', async () => {
    const { open } = await scene(`who loses the decision point by ${transport}`);
    const next = await open(transport);
    await next();
    point.behave('answers 500');
    expect(codesOf((await next()) as Answer)).toEqual(['AUTH_UNAVAILABLE']);
    expect(await next()).toBeUndefined();
    point.behave(undefined);
  });
});

async function overSocket(id: string, headers: Texts): Promise<() => Promise<unknown>> {
  const socket = await initSocket(gateway, headers);
  socket.subscribe({ query: follow, variables: { id } });
  let read = 0;
  return async () => {
    const mine = () => socket.received.filter((message) => message.id === '1');
    await until(() => mine().length > read);
    const { type, payload } = mine()[read++] ?? {};
    return type === 'next' ? payload : undefined;
  };
}

async function overEvents(id: string, headers: Texts): Promise<() => Promise<unknown>> {
  const response = await postEvents(gateway, { query: follow, variables: { id } }, headers);
  const events = eventReader(response);
  return async () => (await events.next())?.data;
}
