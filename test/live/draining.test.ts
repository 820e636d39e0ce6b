import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, it } from '@jest/globals';
import { startTrustedProvider } from '../support/authenticated.js';
import { startTestDecisionPoint } from '../support/decisionPoint.js';
import { type Environment, startTestGateway, type TestGateway } from '../support/gateway.js';
import { addJob, quickPolls, watchJob } from '../support/liveJob.js';
import { until } from '../support/redis.js';

// A stream that is admitted just before the gateway drains has not ended, so it must not be told that it is complete.

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(env: Environment): Promise<TestGateway> {
  const gateway = await startTestGateway({ ...quickPolls, ...env });
  cleanups.push(() => gateway.stop());
  return gateway;
}

/** A router's callback address, which notes what is posted and answers a check when it may. */
async function startRouter() {
  const posted: string[] = [];
  let mayAnswer: Promise<void> | undefined;
  const server: Server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    const { action } = JSON.parse(body) as { action: string };
    posted.push(action);
    await mayAnswer;
    response.writeHead(action === 'check' ? 204 : 200, { 'subscription-protocol': 'callback/1.0' }).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    posted,
    hold(): () => void {
      let release = () => {};
      mayAnswer = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
  };
}

const secret = 'a-secret-of-the-router';

function askForCallback(gateway: TestGateway, routerOrigin: string, variables: object, authorization?: string) {
  const subscription = { callbackUrl: `${routerOrigin}/1`, subscriptionId: '1', verifier: 'v', heartbeatIntervalMs: 0 };
  return fetch(`${gateway.origin}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json;callbackSpec=1.0',
      'x-gateway-router-secret': secret,
      ...(authorization !== undefined && { authorization }),
    },
    body: JSON.stringify({ query: watchJob, variables, extensions: { subscription } }),
  });
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
  const gateway = await start({ FEDERATION_SHARED_SECRET: secret, CALLBACK_ORIGINS: router.origin });
  const release = router.hold();
  const asked = askForCallback(gateway, router.origin, addJob(gateway));
  await until(() => router.posted.length > 0);
  await expectRefusedInDrain(gateway, release, asked);
  expect(router.posted).toEqual(['check']);
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
    FEDERATION_SHARED_SECRET: secret,
    CALLBACK_ORIGINS: router.origin,
    AUTH_DECISION_URL: point.url,
  });
  const job = addJob(gateway);
  point.allow('ada', [job.taxpayerId]);
  const release = point.hold();
  const asked = askForCallback(gateway, router.origin, job, await provider.watcherOf([]));
  await until(() => point.asked.length > 0);
  await expectRefusedInDrain(gateway, release, asked);
  expect(router.posted).toEqual(['check']);
});
