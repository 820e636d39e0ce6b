import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { addJob, metric, quickPolls, update, watchJob } from '../support/liveJob.js';
import { until } from '../support/redis.js';
import { streamReader } from '../support/streamReader.js';

function ask({ origin }: TestGateway, accept: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  return fetch(`${origin}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept, ...headers },
    body: JSON.stringify(body),
  });
}

describe('a multipart subscription', () => {
  let gateway: TestGateway;
  const accept = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json';

  beforeAll(async () => {
    gateway = await startTestGateway(quickPolls);
  });

  afterAll(() => gateway.stop());

  it('brings each change as a part', async () => {
    const job = addJob(gateway);
    const response = await ask(gateway, accept, { query: watchJob, variables: job });
    expect(response.headers.get('content-type')).toBe('multipart/mixed;boundary="graphql";subscriptionSpec="1.0"');
    const parts = streamReader(response);
    const nextPart = async () => JSON.parse((await parts.next('\r\n--graphql'))?.split('\r\n\r\n')[1] ?? '');
    expect(await parts.next('--graphql')).toBe('\r\n');
    expect(await nextPart()).toEqual({ payload: update(job.jobId, 'PROCESSING') });
    gateway.sandbox.control.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    expect(await nextPart()).toEqual({ payload: update(job.jobId, 'COMPLETED') });
    expect(await parts.next('\r\n')).toBe('--');
    expect(await parts.next('\r\n')).toBeUndefined();
  });

  it.each(['{ nothing }', '{ __typename }', 'subscription { nothing }'])(
    'is the form of %s only for a client that takes no JSON',
    async (query) => {
      const expected = /"code":"GRAPHQL_VALIDATION_FAILED"|"__typename":"Query"/;
      const parts = streamReader(await ask(gateway, accept.replace(',application/json', ''), { query }));
      await parts.next('--graphql');
      expect(await parts.next('--graphql')).toMatch(expected);
      const response = await ask(gateway, accept, { query });
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(await response.text()).toMatch(expected);
    },
  );

  it('that is refused is told of it in the same form', async () => {
    const query = 'subscription { refreshJobUpdated(taxpayerId: "..", jobId: "1") { status } }';
    const parts = streamReader(await ask(gateway, accept, { query }));
    await parts.next('--graphql');
    expect(await parts.next('--graphql')).toContain('"code":"BAD_USER_INPUT"');
  });
});

/** What the callback address of a router gets, and how it answers. */
interface Posted {
  readonly action: string;
  readonly id: string;
  readonly verifier: string;
  readonly payload?: unknown;
  readonly errors?: unknown;
}

describe('a callback subscription', () => {
  const secret = 'a-secret-of-the-router';
  const accept = 'application/json;callbackSpec=1.0';
  let router: Server;
  let routerOrigin: string;
  let gateway: TestGateway;
  let posted: Posted[];
  let statusOf: (post: Posted) => number;

  beforeAll(async () => {
    router = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', () => {
        const post = JSON.parse(body) as Posted;
        posted.push(post);
        const status = statusOf(post);
        response.writeHead(status, { location: 'http://127.0.0.1:1/', 'subscription-protocol': 'callback/1.0' }).end();
      });
    }).listen(0, '127.0.0.1');
    await once(router, 'listening');
    routerOrigin = `http://127.0.0.1:${(router.address() as AddressInfo).port}`;
    gateway = await startTestGateway({
      ...quickPolls,
      FEDERATION_SHARED_SECRET: secret,
      CALLBACK_ORIGINS: `${routerOrigin},https://other.example`,
    });
  });

  afterAll(async () => {
    await gateway.stop();
    router.closeAllConnections();
    router.close();
  });

  beforeEach(() => {
    posted = [];
    statusOf = ({ action }) => (action === 'check' ? 204 : 200);
  });

  afterEach(() => until(async () => (await metric(gateway, 'gateway_job_watchers')) === 0));

  function subscribe(variables: object, subscription: object = {}, headers = { 'x-gateway-router-secret': secret }) {
    const callback = { callbackUrl: `${routerOrigin}/callback/1`, subscriptionId: '1', verifier: 'v', ...subscription };
    return ask(gateway, accept, { query: watchJob, variables, extensions: { subscription: callback } }, headers);
  }

  const actions = () => posted.map(({ action }) => action);

  it('is confirmed first, then posts each change and the end', async () => {
    const job = addJob(gateway);
    const response = await subscribe(job, { heartbeatIntervalMs: 0 });
    expect([response.status, response.headers.get('subscription-protocol'), await response.json()]).toEqual([
      200,
      'callback/1.0',
      { data: null },
    ]);
    await until(() => actions().includes('next'));
    gateway.sandbox.control.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    await until(() => actions().includes('complete'));
    const about = { kind: 'subscription', id: '1', verifier: 'v' };
    expect(posted).toEqual([
      { ...about, action: 'check' },
      { ...about, action: 'next', payload: update(job.jobId, 'PROCESSING') },
      { ...about, action: 'next', payload: update(job.jobId, 'COMPLETED') },
      { ...about, action: 'complete' },
    ]);
  });

  it.each([
    ['without the secret', {}, { 'x-gateway-router-secret': 'wrong' }, 403],
    ['to another origin', { callbackUrl: 'http://127.0.0.1:1/callback' }, undefined, 403],
    ['to an origin that only looks allowed', { callbackUrl: 'https://other.example@evil.example/' }, undefined, 403],
    ['with credentials in the address', { callbackUrl: 'https://user:pass@other.example/' }, undefined, 403],
    ['without an address', { callbackUrl: undefined }, undefined, 400],
    ['without a verifier', { verifier: 7 }, undefined, 400],
  ])('is refused %s, and nothing is posted', async (_, subscription, headers, status) => {
    const job = addJob(gateway);
    expect((await subscribe(job, subscription, headers)).status).toBe(status);
    expect(posted).toEqual([]);
    expect(gateway.sandbox.control.jobCalls(job.taxpayerId, job.jobId)).toBe(0);
  });

  it('is not the form of a query, whatever the client accepts besides', async () => {
    const response = await ask(gateway, accept, { query: '{ __typename }' });
    expect([response.status, await response.json()]).toEqual([200, { data: { __typename: 'Query' } }]);
    expect(posted).toEqual([]);
  });

  it.each([
    ['does not know it', 404],
    ['redirects us', 307],
  ])('does not begin when the router %s', async (_, status) => {
    statusOf = () => status;
    expect((await subscribe(addJob(gateway))).status).toBe(400);
    expect(actions()).toEqual(['check']);
  });

  it('ends when the router no longer knows it', async () => {
    statusOf = ({ action }) => (action === 'check' ? 204 : 404);
    await subscribe(addJob(gateway), { heartbeatIntervalMs: 0 });
    await until(() => actions().includes('next'));
    expect(await metric(gateway, 'gateway_open_streams{transport="callback"}')).toBe(0);
  });

  it('ends when the heartbeat finds it unknown', async () => {
    let checks = 0;
    statusOf = ({ action }) => {
      if (action !== 'check') return 200;
      checks += 1;
      return checks < 3 ? 204 : 404;
    };
    await subscribe(addJob(gateway), { heartbeatIntervalMs: 1 });
    await until(() => checks === 3);
    await until(async () => (await metric(gateway, 'gateway_open_streams{transport="callback"}')) === 0);
  });

  it('is posted again while the router fails', async () => {
    let failures = 0;
    statusOf = ({ action }) => {
      if (action === 'check') return 204;
      failures += 1;
      return failures < 3 ? 503 : 200;
    };
    const job = addJob(gateway);
    await subscribe(job, { heartbeatIntervalMs: 0 });
    gateway.sandbox.control.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    await until(() => actions().includes('complete'));
    expect(actions().filter((action) => action === 'next').length).toBeGreaterThanOrEqual(3);
  });
});
