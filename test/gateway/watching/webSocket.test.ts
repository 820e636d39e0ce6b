import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { jest } from '@jest/globals';
import { WebSocket } from 'ws';
import { Quota } from '../../../src/admission/Quota.js';
import { endOfTurn } from '../../../src/process/pause.js';
import { quickPolls, startTestGateway, startTrustedProvider, whenMetric } from '../../support/gateway.js';
import { addJob, update, watchJob } from '../../support/liveJob.js';
import { clientFrame } from '../../support/rawHttp.js';
import { initSocket, type RawSocket, rawSocket } from '../../support/rawSocket.js';
import { postEvents } from '../../support/streamReader.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const watching = (variables: object) => ({ query: watchJob, variables });
const readRecord = 'query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }';

const gateway = await startTestGateway({ ...quickPolls, MAX_SUBSCRIPTIONS: '3' });
const provider = await startTrustedProvider();
const guarded = await startTestGateway({ ...quickPolls, ...provider.env, INTROSPECTION: 'false' });

describe('subscriptions over WebSocket', () => {
  it('give the present status at once, then each change, and complete after a final one', async () => {
    const job = addJob(gateway);
    const socket = await initSocket(gateway);
    socket.subscribe(watching(job));
    const nexts = () => socket.received.filter(({ type }) => type === 'next');
    // Of a status that the schema does not know, nobody can say that it is final.
    for (const [n, status] of ['paused', 'completed'].entries()) {
      await until(() => nexts().length > n);
      gateway.sandbox.updateJob(job.taxpayerId, job.jobId, { status });
    }
    await socket.message('complete');
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
    gateway.sandbox.arm({ endpoint: 'refreshJob', taxpayerId: job.taxpayerId, fault: { status } });
    const socket = await initSocket(gateway);
    socket.subscribe(watching(job));
    await socket.message('complete');
    expect(socket.received[1]).toMatchObject({
      type: 'next',
      payload: { errors: [{ extensions: { code, retryable: false, requestId: expect.any(String) } }] },
    });
  });

  it('are refused with a message of their own before anything runs', async () => {
    const socket = await initSocket(gateway);
    socket.subscribe({ query: '{ nothing }' });
    const { type, payload: errors } = await socket.answerTo('1');
    const extensions = expect.objectContaining({
      code: 'GRAPHQL_VALIDATION_FAILED',
      requestId: expect.any(String),
    });
    expect([type, errors]).toEqual(['error', [expect.objectContaining({ extensions })]]);
  });

  it.each([
    ['a subscription before connection_init', (socket: RawSocket) => socket.subscribe(watching({})), 4401],
    [
      'two connection_init messages',
      (socket: RawSocket) => [1, 2].map(() => socket.send({ type: 'connection_init' })),
      4429,
    ],
    ['text that is not JSON', (socket: RawSocket) => socket.send('{'), 4400],
    ['a message of the server', (socket: RawSocket) => socket.send({ type: 'connection_ack' }), 4400],
    [
      'a message in very many fragments',
      ({ socket }: RawSocket) => times(300, () => socket.send('x', { fin: false })),
      1008,
    ],
    [
      'a message in very many pieces',
      async (socket: RawSocket) => {
        await socket.init();
        socket.connection.setNoDelay().write(clientFrame(1, Buffer.of(), 60_000));
        for (let n = 0; n < 3000; n += 1) {
          socket.connection.write('x');
          await endOfTurn();
        }
      },
      1008,
    ],
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
    const evil = { origin: 'https://evil.example', host: '[' };
    for (const headers of [evil, { origin: 'null' }, { origin: 'http://127.0.0.1:1' }]) {
      const { statusCode, headers: answered } = await rawSocket(gateway.origin, { headers }).refused();
      expect(statusCode).toBe(403);
      expect(answered).toMatchObject({
        'cache-control': 'no-store, no-transform',
        'x-content-type-options': 'nosniff',
      });
      expect(answered).not.toHaveProperty('retry-after');
    }
    for (const origin of [gateway.origin, 'https://studio.apollographql.com']) {
      await rawSocket(gateway.origin, { headers: { origin } }).init();
    }
  });

  it('are for pages of our own behind a proxy, with the port of the page or without', async () => {
    const origin = 'https://gateway.example';
    for (const host of ['gateway.example', 'gateway.example:443']) {
      await rawSocket(gateway.origin, { headers: { origin, host } }).init();
    }
    const other = rawSocket(gateway.origin, { headers: { origin, host: 'gateway.example:8443' } });
    expect((await other.refused()).statusCode).toBe(403);
  });

  it('leave requests that offer another upgrade alone', async () => {
    const connection = 'Upgrade, HTTP2-Settings, close';
    const headers = { connection, upgrade: 'h2c', 'content-type': 'application/json' };
    const sent = httpRequest(`${gateway.origin}/graphql`, { method: 'POST', headers });
    sent.end('{"query":"{ __typename }"}');
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    expect([response.statusCode, response.headers.connection]).toEqual([200, 'close']);
    expect(await text(response)).toBe('{"data":{"__typename":"Query"}}');
    expect((await rawSocket(gateway.origin, { path: '/elsewhere' }).refused()).statusCode).toBe(404);
  });
});

describe('a full or stopping gateway', () => {
  it('accepts at most MAX_CONNECTIONS sockets', async () => {
    const gateway = await startTestGateway({ MAX_CONNECTIONS: '2' });
    const first = await initSocket(gateway);
    await initSocket(gateway);
    const third = rawSocket(gateway.origin);
    await third.sendInit();
    expect((await third.closed).code).toBe(1013);
    first.end();
    await whenMetric(gateway, 'gateway_open_streams{transport="ws"}', 1);
    await initSocket(gateway);
  });

  it('answers what is under way, refuses all else, and closes each socket with a reason that clients take for temporary', async () => {
    const gateway = await startTestGateway({ ...quickPolls, DRAIN_TIMEOUT_MS: '20000' });
    const { sandbox } = gateway;
    const job = addJob(gateway);
    const connected = () => initSocket(gateway);
    const [idle, watcher, asking, waiting] = await Promise.all([connected(), connected(), connected(), connected()]);
    watcher.subscribe(watching(job));
    asking.subscribe(watching(job), 'cut');
    for (const each of [watcher, asking]) await each.message('next');
    const variables = { id: sandbox.addTaxpayer().id };
    sandbox.arm({ endpoint: 'taxpayerToken', fault: { gate: 'g' } });
    const called = sandbox.whenCalled('taxpayerToken', 2);
    asking.subscribe({ query: readRecord, variables }, 'held');
    await called;
    const turn = asking.message('error').then(() => {});
    const turnOf = jest.spyOn(Quota.prototype, 'turnOf').mockReturnValueOnce(turn);
    waiting.send({ type: 'ping' });
    await until(() => turnOf.mock.calls.length > 0);
    const stopped = gateway.stop();
    const late = rawSocket(gateway.origin);
    const refusal = late.refused().then(({ statusCode, headers }) => [statusCode, headers['retry-after']]);
    expect(await Promise.race([refusal, late.opened])).toEqual([503, '1']);
    for (const { closed } of [idle, watcher]) expect(await closed).toEqual({ code: 1001, reason: 'shutting down' });
    const queries = ['{ __typename }', 'mutation { createClientLink(input: {}) { replayed } }'];
    for (const payload of [...queries.map((query) => ({ query })), watching(job)]) {
      const id = JSON.stringify(payload);
      asking.subscribe(payload, id);
      const extensions = { code: 'SHUTTING_DOWN', retryable: true, retryAfterSeconds: 1 };
      expect(await asking.answerTo(id)).toMatchObject({ type: 'error', payload: [{ extensions }] });
    }
    expect(sandbox.counters().createClientLink).toBe(0);
    await waiting.message('pong');
    sandbox.release('g');
    expect(await asking.closed).toEqual({ code: 1001, reason: 'shutting down' });
    await stopped;
    expect((await asking.answerTo('held')).payload).toEqual({ data: { taxpayerToken: { status: 'CREATED' } } });
    // A cut subscription is not a complete one.
    expect([...watcher.received, ...asking.received].filter(({ type }) => type === 'complete')).toEqual([
      { type: 'complete', id: 'held' },
    ]);
  });
});

describe('a caller on a socket', () => {
  it.each(['authorization', 'Authorization', 'AUTHORIZATION'])(
    'is authenticated by %s of the connection parameters',
    async (name) => {
      const job = addJob(guarded);
      const socket = await initSocket(guarded, { [name]: await provider.watcherOf([job.taxpayerId]) });
      socket.subscribe(watching(job));
      expect((await socket.answerTo('1')).type).toBe('next');
    },
  );

  it('is authenticated by the header of the upgrade, unless the parameters have a token, even one that is no text', async () => {
    const headers = { authorization: await provider.watcherOf([]) };
    await rawSocket(guarded.origin, { headers }).init();
    const socket = rawSocket(guarded.origin, { headers });
    await socket.sendInit({ authorization: 7 });
    expect((await socket.closed).code).toBe(4401);
  });

  it('without a subprotocol is told which one is spoken', async () => {
    const address = `${guarded.origin.replace('http', 'ws')}/graphql`;
    const [code, reason] = await once(new WebSocket(address), 'close');
    expect([code, String(reason)]).toEqual([4406, 'The subprotocol must be graphql-transport-ws']);
    const choosing = new WebSocket(address, ['graphql-ws', 'graphql-transport-ws']);
    await once(choosing, 'open');
    expect(choosing.protocol).toBe('graphql-transport-ws');
    choosing.close();
  });

  const whereItBelongs = / as the connection parameter authorization$/;
  it.each([
    ['nothing', undefined, whereItBelongs],
    ['null', null, whereItBelongs],
    ['no token', {}, whereItBelongs],
    ['a token elsewhere', { headers: { authorization: 'Bearer x' } }, whereItBelongs],
    ['a malformed token', { authorization: 'Bearer x' }, /not a signed JWT/],
  ])('is rejected with %s, and told why', async (_, parameters, reason) => {
    const socket = rawSocket(guarded.origin);
    await socket.sendInit(parameters);
    expect(await socket.closed).toEqual({ code: 4401, reason: expect.stringMatching(reason) });
    expect(socket.received).toEqual([]);
  });

  it('is disconnected when the token expires, which ends all its subscriptions', async () => {
    const job = addJob(guarded);
    const socket = await initSocket(guarded, { authorization: await provider.watcherOf([job.taxpayerId], 2) });
    for (let id = 0; id < 20; id += 1) socket.subscribe(watching(job), `${id}`);
    expect(await socket.closed).toEqual({ code: 4403, reason: 'The access token has expired' });
    const [, ...nexts] = socket.received.map(({ payload }) => payload);
    expect(nexts).toEqual(Array(20).fill(update(job.jobId, 'PROCESSING')));
    await whenMetric(guarded, 'gateway_watchers{kind="job"}', 0);
  });

  it('leaves no timer behind, nor on a stream, and sets none that is too long for Node.js', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const most = timers() + 5;
    const job = addJob(guarded);
    const setTimer = jest.spyOn(globalThis, 'setTimeout');
    const authorization = await provider.watcherOf([job.taxpayerId], 3_000_000); // seconds
    for (let count = 0; count < 10; count += 1) {
      (await initSocket(guarded, { authorization })).end();
      await (await postEvents(guarded, watching(job), { authorization })).body?.cancel();
    }
    await until(() => timers() < most);
    const longest = Math.max(...setTimer.mock.calls.map(([, ms = 0]) => ms));
    setTimer.mockRestore();
    expect(longest).toBeLessThan(2 ** 31);
  });

  it('is disconnected at its next operation when the clock was set beyond the end of its token', async () => {
    const socket = await initSocket(guarded, { authorization: await provider.watcherOf([]) });
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 600_000);
    socket.subscribe({ query: '{ __typename }' });
    expect(await Promise.race([socket.closed, socket.answerTo('1')])).toMatchObject({ code: 4403 });
    clock.mockRestore();
  });
});
