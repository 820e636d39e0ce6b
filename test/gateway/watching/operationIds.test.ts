import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { addJob, metric, quickPolls, watchJob } from '../../support/liveJob.js';
import { type RawSocket, rawSocket } from '../../support/rawSocket.js';
import { until } from '../../support/until.js';

describe('an operation id on a socket', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway({ ...quickPolls, MAX_SUBSCRIPTIONS: '2' });
  });

  beforeEach(async () => {
    gateway.sandbox.control.disarmAll();
    await until(async () => (await metric(gateway, 'gateway_open_streams{transport="ws"}')) === 0);
  });

  async function connected(): Promise<RawSocket> {
    const socket = rawSocket(gateway.origin);
    await socket.init();
    return socket;
  }

  const subscription = (id: string) => ({
    type: 'subscribe',
    id,
    payload: { query: watchJob, variables: addJob(gateway) },
  });

  /** A query that ends when the gate is opened. */
  function heldQuery(id: string) {
    const gate = randomUUID();
    const { control } = gateway.sandbox;
    const { id: taxpayerId } = control.addTaxpayer();
    control.arm({ endpoint: 'taxpayerToken', taxpayerId, fault: { gate } });
    const query = `{ taxpayerToken(taxpayerId: "${taxpayerId}") { status } }`;
    const called = control.whenCalled('taxpayerToken', control.counters().taxpayerToken + 1);
    return { message: { type: 'subscribe', id, payload: { query } }, called, release: () => control.release(gate) };
  }

  const answered = () =>
    metric(gateway, 'gateway_operations_total{operation="taxpayerToken",transport="ws",outcome="ok"}');

  it('that is used again leaves no subscription behind when the socket ends, and mixes no results', async () => {
    const socket = await connected();
    const query = heldQuery('1');
    socket.send(query.message);
    await query.called;
    socket.send({ type: 'complete', id: '1' });
    socket.send(subscription('1'));
    await socket.message(({ type }) => type === 'next');
    const before = await answered();
    query.release();
    await until(async () => (await answered()) > before);
    socket.send({ type: 'ping' });
    await socket.message(({ type }) => type === 'pong');
    const results = socket.received.filter(({ id }) => id === '1');
    expect(results).toEqual([
      expect.objectContaining({ type: 'next', payload: { data: { refreshJobUpdated: expect.anything() } } }),
    ]);
    socket.end();
    await until(async () => (await metric(gateway, 'gateway_watchers{kind="job"}')) === 0, 5000);
  });

  it('that is completed counts until its work has ended', async () => {
    const socket = await connected();
    const releases: (() => void)[] = [];
    for (let n = 0; n < 2; n += 1) {
      const { message, called, release } = heldQuery('1');
      releases.push(release);
      socket.send(message);
      await called;
      socket.send({ type: 'complete', id: '1' });
    }
    for (let n = 0; n < 18; n += 1) {
      socket.send(heldQuery('1').message);
      socket.send({ type: 'complete', id: '1' });
    }
    socket.send({ type: 'ping' });
    await socket.message(({ type }) => type === 'pong');
    const refused = socket.received.filter(({ type }) => type === 'error');
    for (const release of releases) release();
    expect(refused).toHaveLength(18);
    expect(JSON.stringify(refused[0])).toContain('MAX_SUBSCRIPTIONS');
  });

  it.each([
    ['at once', async () => {}],
    ['while it runs', (socket: RawSocket) => socket.message(({ type }) => type === 'next')],
  ])('that is taken closes the socket with 4409, %s, and ends what it names', async (_, wait) => {
    const socket = await connected();
    socket.send(subscription('1'));
    await wait(socket);
    socket.send(subscription('1'));
    expect(await socket.closed).toEqual({ code: 4409, reason: 'Subscriber for 1 already exists' });
    await until(async () => (await metric(gateway, 'gateway_watchers{kind="job"}')) === 0, 5000);
  });

  it('too long to be named closes the socket as well', async () => {
    const socket = await connected();
    const id = 'ü'.repeat(2000);
    socket.send(subscription(id));
    socket.send(subscription(id));
    expect((await socket.closed).code).toBe(4409);
  });
});

it('a ping nested deeply is answered, and is no bug of the gateway', async () => {
  const gateway = await startTestGateway();

  const socket = rawSocket(gateway.origin);
  await socket.init();
  socket.send(`{"type":"ping","payload":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`);
  await socket.message(({ type }) => type === 'pong');
  expect(gateway.logs.filter((line) => /"level":(50|60|"error"|"fatal")/.test(line))).toEqual([]);
});
