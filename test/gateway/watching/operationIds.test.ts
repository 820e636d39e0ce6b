import { metric, quickPolls, startTestGateway, whenMetric } from '../../support/gateway.js';
import { addJob, watchJob } from '../../support/liveJob.js';
import { initSocket, type RawSocket } from '../../support/rawSocket.js';
import { until } from '../../support/until.js';

const gateway = await startTestGateway({ ...quickPolls, MAX_SUBSCRIPTIONS: '2' });

describe('an operation id on a socket', () => {
  beforeEach(async () => {
    gateway.sandbox.disarmAll();
    await whenMetric(gateway, 'gateway_open_streams{transport="ws"}', 0);
  });

  const subscribe = (socket: RawSocket, id?: string) =>
    socket.subscribe({ query: watchJob, variables: addJob(gateway) }, id);

  /** A query that ends when the gate is opened. */
  function heldQuery(socket: RawSocket) {
    const { sandbox } = gateway;
    const { id: taxpayerId } = sandbox.addTaxpayer();
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId, fault: { gate: taxpayerId } });
    socket.subscribe({ query: `{ taxpayerToken(taxpayerId: "${taxpayerId}") { status } }` });
    const called = sandbox.whenCalled('taxpayerToken', sandbox.counters().taxpayerToken + 1);
    return { called, release: () => sandbox.release(taxpayerId) };
  }

  const answered = () =>
    metric(gateway, 'gateway_operations_total{operation="taxpayerToken",transport="ws",outcome="ok"}');

  it('that is used again leaves no subscription behind when the socket ends, and mixes no results', async () => {
    const socket = await initSocket(gateway);
    const query = heldQuery(socket);
    await query.called;
    socket.send({ type: 'complete', id: '1' });
    subscribe(socket);
    await socket.message('next');
    const before = await answered();
    query.release();
    await until(async () => (await answered()) > before);
    socket.send({ type: 'ping' });
    await socket.message('pong');
    const results = socket.received.filter(({ id }) => id === '1');
    expect(results).toEqual([
      expect.objectContaining({ type: 'next', payload: { data: { refreshJobUpdated: expect.anything() } } }),
    ]);
    socket.end();
    await whenMetric(gateway, 'gateway_watchers{kind="job"}', 0, 5000);
  });

  it('that is completed counts until its work has ended', async () => {
    const socket = await initSocket(gateway);
    const releases: (() => void)[] = [];
    for (let n = 0; n < 2; n += 1) {
      const { called, release } = heldQuery(socket);
      releases.push(release);
      await called;
      socket.send({ type: 'complete', id: '1' });
    }
    for (let n = 0; n < 18; n += 1) {
      heldQuery(socket);
      socket.send({ type: 'complete', id: '1' });
    }
    socket.send({ type: 'ping' });
    await socket.message('pong');
    const refused = socket.received.filter(({ type }) => type === 'error');
    for (const release of releases) release();
    expect(refused).toHaveLength(18);
    expect(JSON.stringify(refused[0])).toContain('MAX_SUBSCRIPTIONS');
  });

  it.each([
    ['at once', async () => {}],
    ['while it runs', (socket: RawSocket) => socket.message('next')],
  ])('that is taken closes the socket with 4409, %s, and ends what it names', async (_, wait) => {
    const socket = await initSocket(gateway);
    subscribe(socket);
    await wait(socket);
    subscribe(socket);
    expect(await socket.closed).toEqual({ code: 4409, reason: 'Subscriber for 1 already exists' });
    await whenMetric(gateway, 'gateway_watchers{kind="job"}', 0, 5000);
  });

  it('too long to be named closes the socket as well', async () => {
    const socket = await initSocket(gateway);
    const id = 'ü'.repeat(2000);
    subscribe(socket, id);
    subscribe(socket, id);
    expect((await socket.closed).code).toBe(4409);
  });
});

it('a ping nested deeply is answered, and is no bug of the gateway', async () => {
  const socket = await initSocket(gateway);
  socket.send(`{"type":"ping","payload":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`);
  await socket.message('pong');
  expect(gateway.output()).not.toMatch(/"level":"(error|fatal)"/);
});
