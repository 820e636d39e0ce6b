import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { acceptAll, type CallbackRouter, startCallbackRouter } from '../support/callbackRouter.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { addJob, metric, quickPolls, update } from '../support/liveJob.js';
import { until } from '../support/until.js';

describe('a callback subscription', () => {
  let router: CallbackRouter;
  let gateway: TestGateway;

  beforeAll(async () => {
    router = await startCallbackRouter();
    const origins = `${router.origin},https://other.example`;
    gateway = await startTestGateway({ ...quickPolls, ...router.env, CALLBACK_ORIGINS: origins });
  });

  afterAll(async () => {
    await gateway.stop();
    router.stop();
  });

  beforeEach(() => {
    router.posted.length = 0;
    router.statusOf = acceptAll;
  });

  afterEach(() => until(async () => (await metric(gateway, 'gateway_job_watchers')) === 0));

  const openStreams = () => metric(gateway, 'gateway_open_streams{transport="callback"}');

  it('is confirmed first, then posts each change and the end', async () => {
    const job = addJob(gateway);
    const response = await router.subscribe(gateway, job);
    expect([response.status, response.headers.get('subscription-protocol'), await response.json()]).toEqual([
      200,
      'callback/1.0',
      { data: null },
    ]);
    await until(() => router.actions().includes('next'));
    gateway.sandbox.control.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    await until(() => router.actions().includes('complete'));
    const about = { kind: 'subscription', id: '1', verifier: 'v' };
    expect(router.posted).toEqual([
      { ...about, action: 'check' },
      { ...about, action: 'next', payload: update(job.jobId, 'PROCESSING') },
      { ...about, action: 'next', payload: update(job.jobId, 'COMPLETED') },
      { ...about, action: 'complete' },
    ]);
  });

  it.each([
    ['without the secret', { headers: { 'x-gateway-router-secret': 'wrong' } }, 403],
    ['to another origin', { callbackUrl: 'http://127.0.0.1:1/callback' }, 403],
    ['to an origin that only looks allowed', { callbackUrl: 'https://other.example@evil.example/' }, 403],
    ['with credentials in the address', { callbackUrl: 'https://user:pass@other.example/' }, 403],
    ['without an address', { callbackUrl: undefined }, 400],
    ['without a verifier', { verifier: 7 }, 400],
  ])('is refused %s, and nothing is posted', async (_, asked, status) => {
    const job = addJob(gateway);
    expect((await router.subscribe(gateway, job, asked)).status).toBe(status);
    expect(router.posted).toEqual([]);
    expect(gateway.sandbox.control.jobCalls(job.taxpayerId, job.jobId)).toBe(0);
  });

  it('is not the form of a query, whatever the client accepts besides', async () => {
    const { status, data } = await gateway.query('{ __typename }', {}, { accept: 'application/json;callbackSpec=1.0' });
    expect([status, data]).toEqual([200, { __typename: 'Query' }]);
    expect(router.posted).toEqual([]);
  });

  it.each([
    ['does not know it', 404],
    ['redirects us', 307],
  ])('does not begin when the router %s', async (_, status) => {
    router.statusOf = () => status;
    expect((await router.subscribe(gateway, addJob(gateway))).status).toBe(400);
    expect(router.actions()).toEqual(['check']);
  });

  it('ends when the router no longer knows it', async () => {
    router.statusOf = ({ action }) => (action === 'check' ? 204 : 404);
    await router.subscribe(gateway, addJob(gateway));
    await until(() => router.actions().includes('next'));
    await until(async () => (await openStreams()) === 0);
  });

  it('ends when the heartbeat finds it unknown', async () => {
    let checks = 0;
    router.statusOf = ({ action }) => {
      if (action !== 'check') return 200;
      checks += 1;
      return checks < 3 ? 204 : 404;
    };
    await router.subscribe(gateway, addJob(gateway), { heartbeatIntervalMs: 1 });
    await until(() => checks === 3);
    await until(async () => (await openStreams()) === 0);
  });

  it('is posted again while the router fails', async () => {
    let failures = 0;
    router.statusOf = ({ action }) => {
      if (action === 'check') return 204;
      failures += 1;
      return failures < 3 ? 503 : 200;
    };
    const job = addJob(gateway);
    await router.subscribe(gateway, job);
    gateway.sandbox.control.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    await until(() => router.actions().includes('complete'));
    expect(router.actions().filter((action) => action === 'next').length).toBeGreaterThanOrEqual(3);
  });

  it('does not begin when the router does not answer', async () => {
    const release = router.hold();
    expect((await router.subscribe(gateway, addJob(gateway))).status).toBe(400);
    release();
    expect(router.actions()).toEqual(['check']);
  });

  it('is no longer checked once it has ended', async () => {
    const job = addJob(gateway);
    gateway.sandbox.control.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    await router.subscribe(gateway, job, { subscriptionId: 'ended', heartbeatIntervalMs: 1 });
    await until(() => router.actions().includes('complete'));
    // A heartbeat of the first would come before the second of one that begins later.
    const running = addJob(gateway);
    await router.subscribe(gateway, running, { subscriptionId: 'running', heartbeatIntervalMs: 1 });
    const checksOf = (of: string) => router.posted.filter(({ id, action }) => id === of && action === 'check').length;
    await until(() => checksOf('running') === 3);
    gateway.sandbox.control.updateJob(running.taxpayerId, running.jobId, { status: 'completed' });
    expect(checksOf('ended')).toBe(1);
  });
});
