import { request as httpRequest } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { startTrustedProvider } from '../../support/authenticated.js';
import { startTestGateway } from '../../support/gateway.js';
import { addJob, metric, quickPolls, update, watchJob } from '../../support/liveJob.js';
import { type RawSocket, rawSocket } from '../../support/rawSocket.js';
import { until } from '../../support/until.js';

function subscribe(variables: object, id = '1') {
  return { type: 'subscribe', id, payload: { query: watchJob, variables } };
}

const gateway = await startTestGateway({ ...quickPolls, MAX_SUBSCRIPTIONS: '3' });
const provider = await startTrustedProvider();
const guarded = await startTestGateway({ ...quickPolls, ...provider.env, INTROSPECTION: 'false' });

describe('subscriptions over WebSocket', () => {
  it('give the present status at once, then each change, and complete after a final one', async () => {
    const job = addJob(gateway);
    const socket = rawSocket(gateway.origin);
    await socket.init();
    socket.send(subscribe(job));
    const nexts = () => socket.received.filter(({ type }) => type === 'next');
    // Of a status that the schema does not know, nobody can say that it is final.
    for (const [n, status] of ['paused', 'completed'].entries()) {
      await until(() => nexts().length > n);
      gateway.sandbox.control.updateJob(job.taxpayerId, job.jobId, { status });
    }
    await socket.message(({ type }) => type === 'complete');
    expect(socket.received.map(({ type, payload }) => [type, payload])).toEqual([
      ['connection_ack', undefined],
      ...['PROCESSING', 'UNRECOGNIZED', 'COMPLETED'].map((status) => ['next', update(job.jobId, status)]),
      ['complete', undefined],
    ]);
  });

  it.each([
    [404, 'NOT_FOUND'],
    [400, 'UPSTREAM_REJECTED'],
    [403, 'TAXPAYER_NOT_AUTHORIZED'],
  ])('end with a coded error when the service answers %i, which it will not take back', async (status, code) => {
    const job = addJob(gateway);
    gateway.sandbox.control.arm({ endpoint: 'refreshJob', taxpayerId: job.taxpayerId, fault: { status } });
    const socket = rawSocket(gateway.origin);
    await socket.init();
    socket.send(subscribe(job));
    await socket.message(({ type }) => type === 'complete');
    expect(socket.received[1]).toMatchObject({
      type: 'next',
      payload: { errors: [{ extensions: { code, retryable: false, requestId: expect.any(String) } }] },
    });
  });

  it('leave no watcher behind, whether completed by the client or cut', async () => {
    for (const leave of [
      (socket: RawSocket) => socket.send({ type: 'complete', id: '1' }),
      (socket: RawSocket) => socket.end(),
    ]) {
      const socket = rawSocket(gateway.origin);
      await socket.init();
      socket.send(subscribe(addJob(gateway)));
      await socket.message(({ type }) => type === 'next');
      expect(await metric(gateway, 'gateway_watchers{kind="job"}')).toBe(1);
      leave(socket);
      await until(async () => (await metric(gateway, 'gateway_watchers{kind="job"}')) === 0);
      socket.end();
    }
    await until(async () => (await metric(gateway, 'gateway_open_streams{transport="ws"}')) === 0);
  });

  it('serve queries and mutations too, with the error format of HTTP', async () => {
    const { taxpayerId } = addJob(gateway);
    const socket = rawSocket(gateway.origin);
    await socket.init();
    const query = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';
    socket.send({ type: 'subscribe', id: 'q', payload: { query, variables: { id: taxpayerId } } });
    await socket.message(({ type, id }) => type === 'complete' && id === 'q');
    expect(socket.received[1]?.payload).toEqual({ data: { taxpayerToken: { status: 'AUTHORIZED' } } });
    const mutation = 'mutation { createClientLink(input: { idempotencyKey: "" }) { replayed } }';
    socket.send({ type: 'subscribe', id: 'm', payload: { query: mutation } });
    const refused = await socket.message(({ id }) => id === 'm');
    expect(refused.payload).toMatchObject({
      errors: [{ path: ['createClientLink'], extensions: { code: 'BAD_USER_INPUT', requestId: expect.any(String) } }],
    });
  });

  it.each([
    ['a syntax error', { query: '{' }, 'GRAPHQL_PARSE_FAILED'],
    ['an unknown field', { query: '{ nothing }' }, 'GRAPHQL_VALIDATION_FAILED'],
    ['too many tokens', { query: `{ ${'__typename '.repeat(3000)} }` }, 'GRAPHQL_VALIDATION_FAILED'],
    ['a missing variable', { query: watchJob }, 'BAD_USER_INPUT'],
    ['a name of no operation', { query: 'query A { __typename }', operationName: 'B' }, 'BAD_USER_INPUT'],
  ])('are refused for %s before anything runs', async (_, payload, code) => {
    const socket = rawSocket(gateway.origin);
    await socket.init();
    socket.send({ type: 'subscribe', id: '1', payload });
    const { type, payload: errors } = await socket.message(({ id }) => id === '1');
    expect([type, errors]).toEqual([
      'error',
      [expect.objectContaining({ extensions: expect.objectContaining({ code, requestId: expect.any(String) }) })],
    ]);
  });

  it('are limited per socket', async () => {
    const socket = rawSocket(gateway.origin);
    await socket.init();
    for (const id of ['1', '2', '3', '4']) socket.send(subscribe(addJob(gateway), id));
    const { type, payload } = await socket.message(({ id }) => id === '4');
    expect([type, payload]).toEqual([
      'error',
      [expect.objectContaining({ message: expect.stringContaining('MAX_SUBSCRIPTIONS') })],
    ]);
    await socket.message(({ type, id }) => type === 'next' && id === '3');
  });

  it.each([
    ['a subscription before connection_init', (socket: RawSocket) => socket.send(subscribe({})), 4401],
    [
      'two connection_init messages',
      (socket: RawSocket) => [1, 2].map(() => socket.send({ type: 'connection_init' })),
      4429,
    ],
    ['text that is not JSON', (socket: RawSocket) => socket.send('{'), 4400],
    ['a message of the server', (socket: RawSocket) => socket.send({ type: 'connection_ack' }), 4400],
    ['a message above MAX_BODY_BYTES', (socket: RawSocket) => socket.send('x'.repeat(262_145)), 1009],
    [
      'a message of a caller above MAX_BODY_BYTES',
      async (socket: RawSocket) => {
        await socket.init();
        socket.send('x'.repeat(262_145));
      },
      1009,
    ],
    ['silence', () => {}, 4408],
  ])('close the socket for %s', async (_, act, code) => {
    const socket = rawSocket(gateway.origin);
    await socket.opened;
    await act(socket);
    expect((await socket.closed).code).toBe(code);
  });

  it('are for pages of our own and of allowed origins only', async () => {
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1']) {
      const answered = new Promise<number | undefined>((resolve) => {
        const socket = rawSocket(gateway.origin, { headers: { origin } });
        socket.socket.on('unexpected-response', (_, response) => resolve(response.statusCode));
      });
      expect(await answered).toBe(403);
    }
    for (const origin of [gateway.origin, 'https://studio.apollographql.com']) {
      await rawSocket(gateway.origin, { headers: { origin } }).init();
    }
  });

  it('leave requests that offer another upgrade alone', async () => {
    const answer = await new Promise<object>((resolve, reject) => {
      const connection = 'Upgrade, HTTP2-Settings, close';
      const headers = { connection, upgrade: 'h2c', 'content-type': 'application/json' };
      const sent = httpRequest(`${gateway.origin}/graphql`, { method: 'POST', headers }, (response) => {
        let body = '';
        response
          .on('data', (chunk) => (body += chunk))
          .on('end', () => resolve({ status: response.statusCode, connection: response.headers.connection, body }));
      });
      sent.on('error', reject).end('{"query":"{ __typename }"}');
    });
    expect(answer).toEqual({ status: 200, connection: 'close', body: '{"data":{"__typename":"Query"}}' });
    const elsewhere = new Promise((resolve) => {
      const socket = rawSocket(gateway.origin, { path: '/elsewhere' });
      socket.socket.on('unexpected-response', (_, response) => resolve(response.statusCode));
    });
    expect(await elsewhere).toBe(404);
  });

  it('do not run over plain HTTP', async () => {
    const answer = await gateway.query(watchJob, addJob(gateway));
    expect(answer).toMatchObject({ status: 400, errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
    expect(answer.errors?.[0]?.message).toContain('WebSocket');
  });
});

describe('a full or stopping gateway', () => {
  it('accepts at most MAX_CONNECTIONS sockets', async () => {
    const gateway = await startTestGateway({ MAX_CONNECTIONS: '2' });
    const [first, second] = [rawSocket(gateway.origin), rawSocket(gateway.origin)];
    await Promise.all([first.init(), second.init()]);
    const refused = new Promise((resolve) => {
      rawSocket(gateway.origin).socket.on('unexpected-response', (_, response) => resolve(response.statusCode));
    });
    expect(await refused).toBe(429);
    first.end();
    await until(async () => (await metric(gateway, 'gateway_open_streams{transport="ws"}')) === 1);
    await rawSocket(gateway.origin).init();
  });

  it('answers what is under way, then closes each socket with a reason that clients take for temporary', async () => {
    const gateway = await startTestGateway({ ...quickPolls, DRAIN_TIMEOUT_MS: '2000' });
    const job = addJob(gateway);
    const [watching, asking] = [rawSocket(gateway.origin), rawSocket(gateway.origin)];
    await Promise.all([watching.init(), asking.init()]);
    watching.send(subscribe(job));
    await watching.message(({ type }) => type === 'next');
    const { id } = gateway.sandbox.control.addTaxpayer({ status: 'CREATED' });
    gateway.sandbox.control.arm({ endpoint: 'taxpayerToken', fault: { gate: 'g' } });
    const called = gateway.sandbox.control.whenCalled('taxpayerToken', 2);
    const query = `{ taxpayerToken(taxpayerId: "${id}") { status } }`;
    asking.send({ type: 'subscribe', id: 'q', payload: { query } });
    asking.send(subscribe(job, 's'));
    await Promise.all([called, asking.message(({ id }) => id === 's')]);
    const stopped = gateway.stop();
    expect(await watching.closed).toEqual({ code: 1001, reason: 'shutting down' });
    gateway.sandbox.control.release('g');
    expect(await asking.closed).toEqual({ code: 1001, reason: 'shutting down' });
    await stopped;
    expect(asking.received.find(({ type, id }) => type === 'next' && id === 'q')?.payload).toEqual({
      data: { taxpayerToken: { status: 'CREATED' } },
    });
    // A cut subscription is not a complete one.
    expect([...watching.received, ...asking.received].filter(({ type }) => type === 'complete')).toEqual([
      { type: 'complete', id: 'q' },
    ]);
  });

  it('refuses new sockets, and what is sent on others, while it answers what is under way', async () => {
    const gateway = await startTestGateway({ ...quickPolls, DRAIN_TIMEOUT_MS: '20000' });
    const { control } = gateway.sandbox;
    const [idle, asking] = [rawSocket(gateway.origin), rawSocket(gateway.origin)];
    await Promise.all([idle.init(), asking.init()]);
    const { id } = control.addTaxpayer({ status: 'CREATED' });
    control.arm({ endpoint: 'taxpayerToken', fault: { gate: 'g' } });
    const called = control.whenCalled('taxpayerToken', 1);
    const query = `{ taxpayerToken(taxpayerId: "${id}") { status } }`;
    asking.send({ type: 'subscribe', id: 'q', payload: { query } });
    await called;
    const stopped = gateway.stop();
    const late = rawSocket(gateway.origin);
    const refused = new Promise((resolve) => {
      late.socket.on('unexpected-response', (_, { statusCode, headers }) =>
        resolve([statusCode, headers['retry-after']]),
      );
    });
    expect(await Promise.race([refused, late.opened])).toEqual([503, '1']);
    await idle.closed;
    asking.send({ type: 'subscribe', id: 'query', payload: { query: '{ __typename }' } });
    const create = 'mutation { createClientLink(input: {}) { replayed } }';
    asking.send({ type: 'subscribe', id: 'mutation', payload: { query: create } });
    asking.send(subscribe(addJob(gateway), 'subscription'));
    for (const late of ['query', 'mutation', 'subscription']) {
      const message = await Promise.race([asking.message(({ id }) => id === late), delay(10_000)]);
      const extensions = { code: 'SHUTTING_DOWN', retryable: true, retryAfterSeconds: 1 };
      expect(message).toMatchObject({ type: 'error', payload: [{ extensions }] });
    }
    expect(control.counters().createClientLink).toBe(0);
    control.release('g');
    expect(await asking.closed).toEqual({ code: 1001, reason: 'shutting down' });
    await stopped;
    expect(asking.received.filter(({ id }) => id === 'q').map(({ type }) => type)).toEqual(['next', 'complete']);
  });
});

describe('a caller on a socket', () => {
  it.each(['authorization', 'Authorization', 'AUTHORIZATION'])(
    'is authenticated by %s of the connection parameters',
    async (name) => {
      const job = addJob(guarded);
      const socket = rawSocket(guarded.origin);
      await socket.init({ [name]: await provider.watcherOf([job.taxpayerId]) });
      socket.send(subscribe(job));
      expect((await socket.message(({ id }) => id === '1')).type).toBe('next');
    },
  );

  it('is authenticated by the header of the upgrade as well', async () => {
    const socket = rawSocket(guarded.origin, { headers: { authorization: await provider.watcherOf([]) } });
    await socket.init();
  });

  it('is not authenticated by that header if the parameters have a token, even one that is no text', async () => {
    const socket = rawSocket(guarded.origin, { headers: { authorization: await provider.watcherOf([]) } });
    await socket.opened;
    socket.send({ type: 'connection_init', payload: { authorization: 7 } });
    expect((await socket.closed).code).toBe(4401);
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['no token', {}],
    ['a malformed token', { authorization: 'Bearer x' }],
    ['a number', { authorization: 7 }],
  ])('is rejected with %s', async (_, parameters) => {
    const socket = rawSocket(guarded.origin);
    await socket.opened;
    socket.send({ type: 'connection_init', payload: parameters });
    expect((await socket.closed).code).toBe(4401);
    expect(socket.received).toEqual([]);
  });

  it.each([
    ['another taxpayer', ['somebody-else'], undefined],
    ['a missing scope', undefined, 'taxpayers:read'],
  ])('is refused for %s, before any call', async (_, taxpayers, scope) => {
    const job = addJob(guarded);
    const socket = rawSocket(guarded.origin);
    await socket.init({ authorization: await provider.watcherOf(taxpayers ?? [job.taxpayerId], 300, scope) });
    const before = guarded.sandbox.control.counters();
    socket.send(subscribe(job));
    await socket.message(({ type }) => type === 'complete');
    expect(socket.received[1]?.payload).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    expect(guarded.sandbox.control.counters()).toEqual(before);
  });

  it('is disconnected when the token expires', async () => {
    const job = addJob(guarded);
    const socket = rawSocket(guarded.origin);
    await socket.init({ authorization: await provider.watcherOf([job.taxpayerId], 2) });
    socket.send(subscribe(job));
    await socket.message(({ type }) => type === 'next');
    expect(await socket.closed).toEqual({ code: 4403, reason: 'The access token has expired' });
    await until(async () => (await metric(guarded, 'gateway_watchers{kind="job"}')) === 0);
  });
});
