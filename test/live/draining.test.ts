import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it } from '@jest/globals';
import { startTrustedProvider } from '../support/authenticated.js';
import { startCallbackRouter } from '../support/callbackRouter.js';
import { startTestDecisionPoint } from '../support/decisionPoint.js';
import { type Environment, startTestGateway, type TestGateway } from '../support/gateway.js';
import { addJob, quickPolls, watchJob } from '../support/liveJob.js';
import { streamReader } from '../support/streamReader.js';
import { until } from '../support/until.js';

// A stream that is cut because the gateway drains has not ended, so it must not be told that it is complete.

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(env: Environment): Promise<TestGateway> {
  const gateway = await startTestGateway({ ...quickPolls, DRAIN_TIMEOUT_MS: '2000', ...env });
  cleanups.push(() => gateway.stop());
  return gateway;
}

async function startRouter() {
  const router = await startCallbackRouter();
  cleanups.push(() => router.stop());
  return router;
}

function expectRefused(status: number | undefined, retryAfter: string | null | undefined, body: string): void {
  expect([status, retryAfter, body]).toEqual([503, '1', expect.stringContaining('"code":"SHUTTING_DOWN"')]);
}

/** What the gateway waits for is released once it drains. */
async function expectRefusedInDrain(gateway: TestGateway, release: () => void, asked: Promise<Response>) {
  const stopped = gateway.stop();
  release();
  const response = await asked;
  expectRefused(response.status, response.headers.get('retry-after'), await response.text());
  await stopped;
}

it.each(['text/event-stream', 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0'])(
  'a %s whose body comes after the gateway has begun to drain is refused, and not called complete',
  async (accept) => {
    const gateway = await start({});
    const body = JSON.stringify({ query: watchJob, variables: addJob(gateway) });
    const headers = { accept, 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
    const sent = httpRequest(`${gateway.origin}/graphql`, {
      method: 'POST',
      headers: { ...headers, expect: '100-continue' },
    });
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    sent.flushHeaders();
    await once(sent, 'continue'); // the request is admitted
    const stopped = gateway.stop();
    sent.end(body);
    const [response] = await answered;
    expectRefused(response.statusCode, response.headers['retry-after'], await text(response));
    await stopped;
  },
);

it('a callback that is confirmed after the gateway has begun to drain is refused, and not called complete', async () => {
  const router = await startRouter();
  const gateway = await start(router.env);
  const release = router.hold();
  const asked = router.subscribe(gateway, addJob(gateway));
  await until(() => router.posted.length > 0);
  await expectRefusedInDrain(gateway, release, asked);
  expect(router.actions()).toEqual(['check']);
});

it('a callback that is permitted after the gateway has begun to drain is refused, and not called complete', async () => {
  const [router, provider, point] = await Promise.all([
    startRouter(),
    startTrustedProvider(),
    startTestDecisionPoint(),
  ]);
  cleanups.push(
    () => provider.stop(),
    () => point.stop(),
  );
  const gateway = await start({
    ...provider.env,
    ...router.env,
    AUTH_DECISION_URL: point.url,
  });
  const job = addJob(gateway);
  point.allow('ada', [job.taxpayerId]);
  const release = point.hold();
  const asked = router.subscribe(gateway, job, { headers: { authorization: await provider.watcherOf([]) } });
  await until(() => point.asked.length > 0);
  await expectRefusedInDrain(gateway, release, asked);
  expect(router.actions()).toEqual(['check']);
});

it('a callback that is running when the gateway begins to drain is told why it ends', async () => {
  const router = await startRouter();
  const gateway = await start(router.env);
  await router.subscribe(gateway, addJob(gateway));
  await until(() => router.actions().includes('next'));
  await gateway.stop();
  const errors = [expect.objectContaining({ extensions: expect.objectContaining({ code: 'SHUTTING_DOWN' }) })];
  expect(router.posted.at(-1)).toMatchObject({ action: 'complete', errors });
});

it('a multipart subscription that is running when the gateway begins to drain is told why it ends', async () => {
  const gateway = await start({});
  const response = await fetch(`${gateway.origin}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'multipart/mixed;subscriptionSpec=1.0' },
    body: JSON.stringify({ query: watchJob, variables: addJob(gateway) }),
  });
  const parts = streamReader(response);
  for (let n = 0; n < 2; n += 1) await parts.next('--graphql');
  const stopped = gateway.stop();
  expect(await parts.next('--graphql')).toContain('"code":"SHUTTING_DOWN"');
  expect(await parts.next('--graphql')).toBe('--\r\n');
  await stopped;
});
