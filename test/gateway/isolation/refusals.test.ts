import { once } from 'node:events';
import { jest } from '@jest/globals';
import { retryAfterSeconds } from '../../../packages/client/src/index.js';
import { Quota } from '../../../src/admission/Quota.js';
import { callerKey } from '../../../src/auth/caller.js';
import { quickPolls, startTestGateway, startTrustedProvider } from '../../support/gateway.js';
import { addJob, watchJob } from '../../support/liveJob.js';
import { rawHttp } from '../../support/rawHttp.js';
import { initSocket, type RawSocket } from '../../support/rawSocket.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const provider = await startTrustedProvider();
const gateway = await startTestGateway(provider.env);
const lenient = await startTestGateway({ ...provider.env, ...quickPolls, MAX_BODY_BYTES: '1000000' });

describe('A flood of refusals', () => {
  /** Sends that many requests without a token, four on a connection, all at once. */
  async function flood(connections: number) {
    const body = '{"query":"{ __typename }"}';
    const head = ['POST /graphql HTTP/1.1', 'host: gateway', 'content-type: application/json'];
    const request = [...head, `content-length: ${body.length}`, '', body].join('\r\n');
    const all = times(connections, () => rawHttp(gateway.origin));
    await Promise.all(all.map(({ socket }) => once(socket, 'connect')));
    const ended = all.map(async ({ write, answer, end }) => {
      write(request.repeat(4));
      let refused = 0;
      while (refused < 4 && (await answer())?.status === 401) refused += 1;
      end();
      return refused;
    });
    return Promise.all(ended);
  }

  it('is answered a few hundred a second; beyond a second of them connections end; others are answered', async () => {
    const authorization = await provider.watcherOf([]);
    const ask = () => gateway.query('{ __typename }', {}, { authorization });
    await ask();
    const startedAt = performance.now();
    const short = flood(148);
    expect((await ask()).status).toBe(200);
    expect(await short).toEqual(Array(148).fill(4));
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    const long = flood(750);
    expect((await ask()).status).toBe(200);
    const total = (await long).reduce((sum, count) => sum + count, 4 * 148);
    expect(total).toBeGreaterThan(800);
    // 100 at once, then 500 a second.
    expect(total).toBeLessThanOrEqual(100 + 0.5 * (performance.now() - startedAt + 1000));
  });

  it.each(['/graphql', '/nothing'])('ends with an answer, or a proxy would count a failure: %s', async (path) => {
    jest.spyOn(Quota.prototype, 'waitOfRefusal').mockReturnValueOnce(undefined);
    jest.spyOn(Quota.prototype, 'begin').mockResolvedValueOnce(false);
    const answer = await fetch(gateway.origin + path);
    jest.restoreAllMocks();
    expect(answer.status).toBe(429);
    expect(Object.fromEntries(answer.headers)).toMatchObject({ connection: 'close', 'retry-after': '1' });
    expect(retryAfterSeconds(await answer.json())).toBe(1);
  });

  it('on a socket closes it, once more wait than a second answers', async () => {
    const socket = await initSocket(gateway, { authorization: await provider.watcherOf([]) });
    const startedAt = performance.now();
    const filler = 'x'.repeat(160_000); // such a message counts as ten
    for (let n = 0; n < 300; n += 1) socket.subscribe({ query: '', extensions: { filler } }, `${n}`);
    expect(await socket.closed).toEqual({ code: 1013, reason: 'Too many messages' });
    const refused = 10 * socket.received.filter(({ type }) => type === 'error').length;
    expect(refused).toBeGreaterThan(500);
    // 100 at once, then 500 a second, of which a second's worth may come early.
    expect(refused).toBeLessThanOrEqual(100 + 0.5 * (performance.now() - startedAt + 1000));
  });
});

describe('Over WebSocket', () => {
  /** A socket of a caller of its own, so that no turn of another is taken. */
  const connected = async (sub: string) =>
    initSocket(lenient, { authorization: `Bearer ${await provider.token({ sub })}` });

  /** Resolves once all that was sent before has been read. */
  async function allRead(socket: RawSocket, mark: string) {
    socket.subscribe({ query: '{ __typename }' }, mark);
    await socket.message('complete', mark);
  }

  const kinds: readonly [string, (socket: RawSocket) => void][] = [
    ['pings', ({ send }) => send({ type: 'ping' })],
    ['pongs', ({ send }) => send({ type: 'pong' })],
    ['ends of operations that it does not have', ({ send }) => send({ type: 'complete', id: 'unknown' })],
    ['ping frames', ({ socket }) => socket.ping()],
    ['pong frames', ({ socket }) => socket.pong()],
  ];

  describe('A flood on a socket', () => {
    it.each(kinds)('of a few hundred %s is read, and the socket works afterwards', async (kind, send) => {
      const socket = await connected(`busy with ${kind}`);
      for (let n = 1; n <= 300; n += 1) send(socket);
      await allRead(socket, 'last');
    });

    it.each(kinds)('of %s at once closes it, while another caller is answered', async (kind, send) => {
      const [hostile, honest] = [await connected(`hostile with ${kind}`), await connected('honest')];
      hostile.connection.cork(); // all in one write
      for (let n = 0; n < 5000; n += 1) send(hostile);
      hostile.connection.uncork();
      await allRead(honest, kind);
      expect(await hostile.closed).toEqual({ code: 1013, reason: 'Too many messages' });
    });
  });

  it('a message is read in its turn, and the time that reading a large one takes is billed to the caller', async () => {
    const spend = jest.spyOn(Quota.prototype, 'spend');
    try {
      const socket = await connected('ada');
      const payload = { filler: times(100_000, () => [0, {}]) };
      spend.mockClear();
      let begin = () => {};
      const turn = new Promise<void>((resolve) => {
        begin = resolve;
      });
      const turnOf = jest.spyOn(Quota.prototype, 'turnOf').mockReturnValueOnce(turn);
      socket.send({ type: 'pong', payload });
      await until(() => turnOf.mock.calls.length > 0);
      expect(spend).not.toHaveBeenCalled();
      begin();
      turnOf.mockRestore();
      socket.subscribe({ query: '{ __typename }' });
      await socket.answerTo('1'); // answered or, if reading took long, refused
      expect(spend.mock.calls).toContainEqual([callerKey(provider.issuer, 'ada'), expect.any(Number)]);
    } finally {
      spend.mockRestore();
    }
  });

  it('an event waits for a turn of its caller', async () => {
    const job = addJob(lenient);
    const socket = await initSocket(lenient, { authorization: await provider.watcherOf([job.taxpayerId]) });
    socket.subscribe({ query: watchJob, variables: job });
    await socket.message('next');
    const turnOf = jest.spyOn(Quota.prototype, 'turnOf').mockReturnValue(new Promise(() => {}));
    lenient.sandbox.updateJob(job.taxpayerId, job.jobId, { status: 'completed' });
    await until(() => turnOf.mock.calls.length > 0);
    turnOf.mockRestore();
    await allRead(socket, 'another');
    expect(socket.received.filter(({ id }) => id === '1')).toHaveLength(1);
  });
});
