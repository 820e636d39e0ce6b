import { once } from 'node:events';
import type { Socket } from 'node:net';
import { jest } from '@jest/globals';
import { Places } from '../../../src/admission/Places.js';
import { makeAuthority } from '../../support/certificate.js';
import { freePort } from '../../support/freePort.js';
import {
  environmentFor,
  metric,
  quickPolls,
  spawnGateway,
  startTestGateway,
  startTrustedProvider,
  type TestGateway,
  whenMetric,
} from '../../support/gateway.js';
import { addJob, watchJob } from '../../support/liveJob.js';
import { rawRequest } from '../../support/rawHttp.js';
import { initSocket, rawSocket } from '../../support/rawSocket.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

/** A job whose status fills more than the system's buffers take: 60 times its name, here of 100 kB. */
const addLargeJob = (gateway: Pick<TestGateway, 'sandbox'>, nameLength = 100_000) =>
  addJob(gateway, { name: 'x'.repeat(nameLength) });

const names = times(60, (n) => `a${n}: name`).join(' ');
const variables = '($taxpayerId: ID!, $jobId: ID!)';
const job = '(taxpayerId: $taxpayerId, jobId: $jobId)';
const readLarge = `query ${variables} { refreshJob${job} { ${names} } }`;
const watchLarge = `subscription ${variables} { refreshJobUpdated${job} { ${names} } }`;

function eventStream(origin: string, query: string, variables: object, authorization?: string): Socket {
  const headers = { accept: 'text/event-stream', ...(authorization && { authorization }) };
  return rawRequest(origin, { path: '/graphql/stream', headers, body: { query, variables } });
}

const eventStreams = 'gateway_open_streams{transport="sse"}';
const webSockets = 'gateway_open_streams{transport="ws"}';

describe.each(['http', 'https'])('over %s, a peer that does not read', (protocol) => {
  async function startImpatientGateway(stallMs: number) {
    const secure = protocol === 'https' ? await secureEnvironment() : undefined;
    const gateway = await startTestGateway({ ...quickPolls, ...secure?.env }, {}, { stallMs });
    return { gateway, origin: gateway.origin.replace('http', protocol), metrics: secure?.metrics ?? gateway };
  }

  it('is cut off from an event stream', async () => {
    const { gateway, origin, metrics } = await startImpatientGateway(400);
    eventStream(origin, watchLarge, addLargeJob(gateway));
    await whenMetric(metrics, eventStreams, 1);
    await whenMetric(metrics, eventStreams, 0, 6000);
    expect(await metric(metrics, 'gateway_watchers{kind="job"}')).toBe(0);
  });

  it('is cut off from a WebSocket, long before a ping would tell', async () => {
    const { gateway, origin, metrics } = await startImpatientGateway(400);
    const [reader, client] = [rawSocket(origin), rawSocket(origin)];
    await Promise.all([reader.init(), client.init()]);
    const read = (id: string) => ({ id, query: readLarge, variables: addLargeJob(gateway) });
    reader.subscribe(read('1'));
    await reader.message('complete');
    client.socket.pause();
    for (const id of ['1', '2']) client.subscribe(read(id), id);
    await whenMetric(metrics, webSockets, 1, 6000);
    reader.send({ type: 'ping' });
    await reader.message('pong');
  });

  it('is distinguished from one that reads slowly', async () => {
    const { gateway, origin } = await startImpatientGateway(1500);
    const socket = eventStream(origin, readLarge, addLargeJob(gateway, 130_000));
    let bytes = 0;
    let end = '';
    await new Promise<void>((resolve, reject) => {
      socket.once('close', () => reject(new Error(`cut after ${bytes} bytes`)));
      socket.on('data', (data) => {
        bytes += data.length;
        end = (end + data.toString('latin1')).slice(-200);
        if (end.includes('event: complete')) resolve();
        socket.pause();
        setTimeout(() => socket.resume(), 10);
      });
      socket.resume();
    });
    expect(bytes).toBeGreaterThan(7_800_000);
  });
});

it('a short message that a WebSocket leaves unread counts with what it takes besides its bytes', async () => {
  const gateway = await startTestGateway();
  const client = await initSocket(gateway);
  client.socket.pause();
  for (const id of ['1', '2']) client.subscribe({ query: readLarge, variables: addLargeJob(gateway) }, id);
  const taken = jest.spyOn(Places.prototype, 'take');
  await until(() => {
    client.send({ type: 'ping' });
    return taken.mock.calls.some(([, , bytes]) => bytes === 1817); // of which the pong has 17
  });
});

/** Reads a connection until one of `texts` has come, which it returns. Rejects when the connection ends before. */
function heard(socket: Socket, ...texts: readonly string[]) {
  let all = '';
  return new Promise((resolve, reject) => {
    const listen = (data: Buffer) => {
      all += data.toString('latin1');
      const text = texts.find((each) => all.includes(each));
      if (text === undefined) return;
      socket.off('data', listen);
      resolve(text);
    };
    socket.on('data', listen).once('end', () => reject(new Error(`cut after ${all}`)));
    socket.resume();
  });
}

it.each(['http', 'https'])(
  'over %s, a caller whose requests fill its share gets the events that it reads',
  async (protocol) => {
    const sandbox = await startSandbox();
    const provider = await startTrustedProvider();
    const secure = protocol === 'https' ? await secureEnvironment() : undefined;
    const bounds = { MAX_BODY_BYTES: '600000', NODE_OPTIONS: '--max-old-space-size=96' };
    const env = { ...environmentFor(sandbox), ...provider.env, ...quickPolls, ...secure?.env, ...bounds };
    const gateway = await spawnGateway(env);
    const origin = gateway.origin.replace('http', protocol);
    const ids = addJob({ sandbox });
    const authorization = await provider.watcherOf([ids.taxpayerId]);
    const watch = (length: number) =>
      eventStream(origin, watchJob, { ...ids, more: 'x'.repeat(length) }, authorization);
    const reader = watch(0);
    await heard(reader, 'PROCESSING');
    // The longest variables that have room leave none for the head of an answer.
    let [longest, refused] = [0, 600_000];
    while (refused - longest > 1) {
      const length = Math.floor((longest + refused) / 2);
      const stream = watch(length);
      if ((await heard(stream, 'PROCESSING', 'HTTP/1.1 429')) === 'PROCESSING') longest = length;
      else refused = length;
      stream.destroy();
      await whenMetric(secure?.metrics ?? gateway, eventStreams, 1);
    }
    expect(longest).toBeGreaterThan(400_000);
    await heard(watch(longest), 'PROCESSING');
    sandbox.updateJob(ids.taxpayerId, ids.jobId, { status: 'completed' });
    await heard(reader, 'COMPLETED');
  },
);

/** Of a gateway that speaks TLS, and tells its metrics without it. */
async function secureEnvironment() {
  const { certFile, keyFile } = makeAuthority(scratch(), 'gateway');
  const port = await freePort();
  const env = { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, METRICS_PORT: String(port) };
  return { env, metrics: { origin: `http://127.0.0.1:${port}` } };
}

it('an event stream that nobody reads watches nothing once its token has expired', async () => {
  const provider = await startTrustedProvider();
  const gateway = await startTestGateway({ ...quickPolls, ...provider.env });
  const ids = addLargeJob(gateway);
  eventStream(gateway.origin, watchLarge, ids, await provider.watcherOf([ids.taxpayerId], 3));
  await whenMetric(gateway, 'gateway_watchers{kind="job"}', 1);
  await whenMetric(gateway, 'gateway_watchers{kind="job"}', 0, 7000);
});

it('what one caller leaves unread is bounded; another is served', async () => {
  const sandbox = await startSandbox();
  const provider = await startTrustedProvider();
  const env = { ...environmentFor(sandbox), ...provider.env };
  // A sixteenth of the heap is room for three such answers.
  const gateway = await spawnGateway({ ...env, NODE_OPTIONS: '--max-old-space-size=256' });
  const ids = addLargeJob({ sandbox });
  const authorization = await provider.watcherOf([ids.taxpayerId]);
  const open = () => eventStream(gateway.origin, watchLarge, ids, authorization);
  for (let n = 1; n <= 5; n += 1) await once(open(), 'readable');
  await expect(heard(open(), 'event: complete')).rejects.toThrow('cut after'); // so its client asks again
  await until(async () => [1, 2, 3].includes(await metric(gateway, eventStreams)), 5000);
  const headers = { authorization: `Bearer ${await provider.token({ sub: 'bob' })}`, accept: 'text/event-stream' };
  const answer = await fetch(`${gateway.origin}/graphql/stream?query={__typename}`, { headers });
  expect(await answer.text()).toContain('"__typename":"Query"');
});
