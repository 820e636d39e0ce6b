import { statusFreshMs } from '../../../src/datasources/RefreshJobs.js';
import { startTestDecisionPoint } from '../../support/decisionPoint.js';
import { executions } from '../../support/executions.js';
import {
  linesWith,
  metric,
  quickPolls,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
  type Texts,
  whenMetric,
} from '../../support/gateway.js';
import { addJob, update, watchJob } from '../../support/liveJob.js';
import { rawRequest } from '../../support/rawHttp.js';
import { rawSocket } from '../../support/rawSocket.js';
import { eventReader, postEvents } from '../../support/streamReader.js';
import { until } from '../../support/until.js';

const gateway = await startTestGateway({ ...quickPolls, LOG_OPERATIONS: 'all' });
const provider = await startTrustedProvider();
const guarded = await startTestGateway({ ...quickPolls, ...provider.env });

describe('server-sent events', () => {
  it.each(['/graphql/stream', '/graphql'])('on %s give each change, then complete', async (path) => {
    const job = addJob(gateway);
    const response = await postEvents(gateway, { query: watchJob, variables: job }, {}, path);
    const headers = ['content-type', 'cache-control', 'x-accel-buffering'].map((name) => response.headers.get(name));
    expect([response.status, ...headers]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
      'no-store, no-transform',
      'no',
    ]);
    const events = eventReader(response);
    expect(await events.next()).toEqual({ event: 'next', data: update(job.jobId, 'PROCESSING') });
    gateway.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    expect(await events.next()).toEqual({ event: 'next', data: update(job.jobId, 'COMPLETED') });
    expect(await events.next()).toEqual({ event: 'complete', data: undefined });
    expect(await events.next()).toBeUndefined();
    expect(await metric(gateway, 'gateway_operation_seconds_count{operation="refreshJobUpdated"}')).toBe(0);
  });

  it('are executed anew for each event, with the data of that moment', async () => {
    const watched = addJob(gateway);
    const { sandbox } = gateway;
    const { jobId: other } = sandbox.addJob({ taxpayerId: watched.taxpayerId, durationMs: Infinity });
    const query = watchJob.replace('status }', 'status taxpayer { refreshJob(jobId: $other) { status } } }');
    const variables = { ...watched, other };
    const document = query.replace('$jobId: ID!)', '$jobId: ID!, $other: ID!)');
    const events = eventReader(await postEvents(gateway, { query: document, variables }));
    const event = (status: string, hanging: string) => ({
      data: {
        data: { refreshJobUpdated: { jobId: watched.jobId, status, taxpayer: { refreshJob: { status: hanging } } } },
      },
    });
    expect(await events.next()).toMatchObject(event('PROCESSING', 'PROCESSING'));
    sandbox.updateJob(watched.taxpayerId, other, { status: 'completed' });
    const seenAt = Date.now();
    await until(() => Date.now() - seenAt > statusFreshMs); // until then the status of the other job may be known still
    sandbox.updateJob(watched.taxpayerId, watched.jobId, { status: 'completed' });
    expect(await events.next()).toMatchObject(event('COMPLETED', 'COMPLETED'));
  });

  it('of a document with a plan are those of its first time, byte for byte', async () => {
    const job = addJob(gateway);
    gateway.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    const fields = '...All taxpayer { id none: refreshJob(jobId: "none") { status } }';
    const query = `${watchJob.replace('status }', `${fields} }`)} fragment All on RefreshJob { __typename observedAt a: name }`;
    const ask = async () =>
      (await postEvents(gateway, { query, variables: job }, { 'x-request-id': 'the-same' })).text();
    const first = await ask();
    expect(first).toMatch(/data: \{"errors":\[\{.*"path":\["refreshJobUpdated","taxpayer","none"\].*"a":/);
    expect([await ask(), await ask()]).toEqual([first, first]);
  });

  it('answer queries by the plans of plain HTTP', async () => {
    const ask = () =>
      postEvents(gateway, { query: 'query Planned { __typename }' }).then((response) => response.text());
    const before = executions(gateway.output(), 'plan');
    const answers = [await ask(), await ask()];
    expect(answers[1]).toBe(answers[0]);
    expect(executions(gateway.output(), 'plan') - before).toBe(1);
  });
});

describe('a caller of an event stream', () => {
  it('is rejected with the whole answer of plain HTTP', async () => {
    const unread = await startTrustedProvider();
    unread.behave('drop');
    const cut = await startTestGateway(unread.env);
    const headers = { 'x-request-id': 'the-same', accept: '*/*' };
    const refusals: readonly [TestGateway, number, Texts][] = [
      [guarded, 401, headers],
      [guarded, 415, { ...headers, authorization: await provider.watcherOf([]), 'content-type': 'text/plain' }],
      [cut, 503, { ...headers, authorization: await unread.watcherOf([]) }],
    ];

    for (const [asked, status, sent] of refusals) {
      const answers = ['/graphql', '/graphql/stream'].map(async (path) => {
        const response = await postEvents(asked, { query: '{ __typename }' }, sent, path);
        const { date: _, 'retry-after': wait, ...named } = Object.fromEntries(response.headers);
        const text = await response.text();
        const said = /"retryAfterSeconds":(\d+)/.exec(text)?.[1];
        expect([wait, said === undefined]).toEqual([said, status !== 503]);
        // Between two answers the time to wait may have become shorter.
        return { status: response.status, headers: named, text: text.replace(`:${said}`, ':…') };
      });
      const [plain, live] = await Promise.all(answers);
      expect(plain?.status).toBe(status);
      expect(live).toEqual(plain);
    }
    const other = await fetch(`${guarded.origin}/graphql/stream`, { method: 'PUT' });
    expect([other.status, other.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  });

  it('is told when the token expires, and the stream ends', async () => {
    const job = addJob(guarded);
    const headers = { authorization: await provider.watcherOf([job.taxpayerId], 2) };
    const events = eventReader(await postEvents(guarded, { query: watchJob, variables: job }, headers));
    expect(await events.next()).toMatchObject({ data: update(job.jobId, 'PROCESSING') });
    expect(await events.next()).toMatchObject({ data: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] } });
    expect(await events.next()).toMatchObject({ event: 'complete' });
    expect(await events.next()).toBeUndefined();
    await whenMetric(guarded, 'gateway_watchers{kind="job"}', 0);
  });
});

it.each(['an EventSource', 'a WebSocket'])(
  '%s that leaves while the token is verified gives back its place, and leaves no stream behind',
  async (who) => {
    const provider = await startTrustedProvider();
    const gateway = await startTestGateway({ ...quickPolls, ...provider.env, MAX_CONNECTIONS: '4' });
    const job = addJob(gateway);
    const authorization = await provider.watcherOf([job.taxpayerId]);
    const headers = { accept: 'text/event-stream', authorization };
    const openSocket = async () => {
      const socket = rawSocket(gateway.origin);
      await socket.sendInit({ authorization });
      return socket.end;
    };
    const openEvents = () => {
      const search = new URLSearchParams({ query: watchJob, variables: JSON.stringify(job) });
      const connection = rawRequest(gateway.origin, { path: `/graphql/stream?${search}`, headers });
      return () => void connection.destroy();
    };
    provider.behave('hold');
    const leave = who === 'a WebSocket' ? await openSocket() : openEvents();
    await until(() => provider.counts.jwks > 0);
    leave();
    await metric(gateway, 'gateway_open_streams{transport="sse"}'); // its end reaches the gateway before this answer
    provider.release();
    const only = await postEvents(gateway, { query: watchJob, variables: job }, headers);
    expect(only.status).toBe(200);
    const events = eventReader(only);
    expect(await events.next()).toMatchObject({ data: update(job.jobId, 'PROCESSING') });
    expect(await metric(gateway, 'gateway_open_streams')).toBe(1);
    expect(await metric(gateway, 'gateway_watchers{kind="job"}')).toBe(1);
    await events.cancel();
  },
);

it('a stream that waits for its decision is over when its client leaves, and not called complete when the gateway stops', async () => {
  const [provider, point] = await Promise.all([startTrustedProvider(), startTestDecisionPoint()]);
  const env = { ...provider.env, AUTH_DECISION_URL: point.url, LOG_OPERATIONS: 'all', DRAIN_TIMEOUT_MS: '1000' };
  const gateway = await startTestGateway({ ...quickPolls, ...env });
  const job = addJob(gateway);
  point.allow('ada', [job.taxpayerId]);
  const token = await provider.token({ sub: 'ada', scope: 'refresh-jobs:read' });
  const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
  const body = { query: watchJob, variables: job };
  const release = point.hold();
  const leaving = rawRequest(gateway.origin, { path: '/graphql/stream', headers, body });
  const asking = postEvents(gateway, body, headers);
  await until(() => point.asked.length > 0);
  leaving.destroy();
  for (let n = 0; n < 3; n += 1) await metric(gateway, 'gateway_watchers'); // meanwhile the gateway hears of it
  const stopped = gateway.stop();
  release();
  expect(await (await asking).text()).not.toContain('complete');
  await stopped;
  expect(linesWith(gateway.logs, { operation: 'refreshJobUpdated' })).toHaveLength(2);
});

it('a stopping gateway ends event streams without calling them complete, after the answers under way', async () => {
  const gateway = await startTestGateway({ ...quickPolls, DRAIN_TIMEOUT_MS: '2000' });
  const job = addJob(gateway);
  const watching = eventReader(await postEvents(gateway, { query: watchJob, variables: job }));
  await watching.next();
  gateway.sandbox.arm({ endpoint: 'taxpayerToken', fault: { gate: 'g' } });
  const called = gateway.sandbox.whenCalled('taxpayerToken', 2);
  const { id } = gateway.sandbox.addTaxpayer();
  const answered = postEvents(gateway, { query: `{ taxpayerToken(taxpayerId: "${id}") { status } }` });
  await called;
  const stopped = gateway.stop();
  const refused = await postEvents(gateway, { query: watchJob, variables: job });
  expect([refused.status, await refused.json()]).toMatchObject([
    503,
    { errors: [{ extensions: { code: 'SHUTTING_DOWN', retryable: true } }] },
  ]);
  expect(await watching.next()).toBeUndefined();
  gateway.sandbox.release('g');
  expect(await eventReader(await answered).next()).toEqual({
    event: 'next',
    data: { data: { taxpayerToken: { status: 'CREATED' } } },
  });
  await stopped;
});
