import { atEnd } from '../../support/atEnd.js';
import {
  type Environment,
  environmentFor,
  linesWith,
  metric,
  post,
  quickPolls,
  spawnGateway,
  startTestGateway,
  startTrustedProvider,
  type Texts,
  whenMetric,
} from '../../support/gateway.js';
import { addJob, watchJob } from '../../support/liveJob.js';
import { initSocket, type RawSocket, rawSocket } from '../../support/rawSocket.js';
import { startSandbox } from '../../support/sandbox.js';
import { until } from '../../support/until.js';

/** A gateway where each caller may hold a quarter of `MAX_CONNECTIONS`, a job, and the headers of two callers. */
async function startScene(env: Environment = {}) {
  const provider = await startTrustedProvider();
  const gateway = await startTestGateway({
    ...quickPolls,
    ...provider.env,
    MAX_CONNECTIONS: '8',
    ...env,
  });
  const job = addJob(gateway);
  const claims = { scope: 'refresh-jobs:read', taxpayer_ids: [job.taxpayerId] };
  const [ada, bob] = await Promise.all(['ada', 'bob'].map((sub) => provider.token({ ...claims, sub })));
  const sockets: RawSocket[] = [];
  const headers = (token = '') => ({ authorization: `Bearer ${token}` });
  return { gateway, job, sockets, ada: headers(ada), bob: headers(bob) };
}

type Scene = Awaited<ReturnType<typeof startScene>>;
function socketOf({ gateway, sockets }: Scene) {
  const socket = rawSocket(gateway.origin);
  sockets.push(socket);
  return socket;
}

/** Whether a stream of each kind is opened, with how it is refused if not. */
const kinds = {
  socket: async (scene: Scene, headers: Texts) => {
    const socket = socketOf(scene);
    await socket.sendInit(headers);
    const opened = socket.message('connection_ack').then(() => 'open');
    return Promise.race([opened, socket.closed.then(({ code, reason }) => `${code} ${reason}`)]);
  },
  'event stream': (scene: Scene, headers: Texts) => httpStream(scene, 'text/event-stream', headers),
  multipart: (scene: Scene, headers: Texts) => httpStream(scene, 'multipart/mixed;subscriptionSpec=1.0', headers),
};

async function httpStream({ gateway, job }: Scene, accept: string, headers: Texts) {
  const response = await post(`${gateway.origin}/graphql`, { query: watchJob, variables: job }, { ...headers, accept });
  if (response.status === 200) atEnd(() => response.body?.cancel());
  return outcomeOf(response);
}

async function outcomeOf(response: Response) {
  if (response.status === 200) return 'open';
  const { errors } = (await response.json()) as { errors: [{ extensions: { code: string; retryable: boolean } }] };
  const { code, retryable } = errors[0].extensions;
  return `${response.status} ${code} ${retryable} ${response.headers.get('retry-after')}`;
}

const waiting = `query ($taxpayerId: ID!, $jobId: ID!) {
  a: refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: 300) { status }
  b: refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: 300) { status }
  c: refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: 300) { status }
}`;

describe('a caller at the bound', () => {
  it.each(Object.entries(kinds))(
    'by a %s opens no stream of any kind until it ends; another caller does',
    async (_, opens) => {
      const scene = await startScene({ MAX_CONNECTIONS: '4' }); // room for one stream
      expect(await opens(scene, scene.ada)).toBe('open');
      for (const [kind, again] of Object.entries(kinds)) {
        const bySocket = '1013 At most 1 open streams per caller (a share of MAX_CONNECTIONS)';
        expect([kind, await again(scene, scene.ada)]).toEqual([
          kind,
          kind === 'socket' ? bySocket : '429 RATE_LIMITED true 1',
        ]);
      }
      const [refused] = linesWith(scene.gateway.logs, { transport: 'ws', outcome: 'refused' });
      expect(refused).toMatchObject({ caller: expect.any(String), callerKind: 'bearer' });
      expect(await opens(scene, scene.bob)).toBe('open');
      scene.gateway.sandbox.updateJob(scene.job.taxpayerId, scene.job.jobId, { status: 'completed' });
      for (const socket of scene.sockets) socket.end();
      await until(async () => (await opens(scene, scene.ada)) === 'open');
    },
  );

  it('watches nothing more until something ends; another caller does', async () => {
    const scene = await startScene();
    const socket = socketOf(scene);
    await socket.init(scene.ada);
    const subscribe = (id: string) => socket.subscribe({ query: watchJob, variables: scene.job }, id);
    for (const id of ['1', '2', '3']) subscribe(id);
    const refused = await socket.message(({ type, id }) => type === 'next' && id === '3');
    expect(refused.payload).toMatchObject({ errors: [{ extensions: { code: 'RATE_LIMITED' } }] });
    const other = socketOf(scene);
    await other.init(scene.bob);
    other.subscribe({ query: watchJob, variables: scene.job });
    await other.message(({ type, payload }) => type === 'next' && 'data' in Object(payload));
    socket.send({ type: 'complete', id: '1' });
    await whenMetric(scene.gateway, 'gateway_watchers{kind="job"}', 2);
    subscribe('4');
    const next = await socket.message(({ type, id }) => type === 'next' && id === '4');
    expect(next.payload).toMatchObject({ data: { refreshJobUpdated: { status: 'PROCESSING' } } });
  });

  it('gets no further wait, but the rest of the answer', async () => {
    const scene = await startScene();
    const answer = scene.gateway.query(waiting, scene.job, scene.ada);
    await whenMetric(scene.gateway, 'gateway_watchers{kind="job"}', 2);
    const other = scene.gateway.query(waiting.replaceAll('300', '1'), scene.job, scene.bob);
    scene.gateway.sandbox.updateJob(scene.job.taxpayerId, scene.job.jobId, { status: 'completed' });
    const { data, errors } = await answer;
    expect(Object.values(data ?? {}).filter((each) => each !== null)).toEqual(Array(2).fill({ status: 'COMPLETED' }));
    expect(errors).toEqual([
      expect.objectContaining({
        path: [expect.stringMatching(/^[abc]$/)],
        extensions: expect.objectContaining({ code: 'RATE_LIMITED' }),
      }),
    ]);
    expect((await other).data).toMatchObject({ a: expect.anything() });
    expect(await metric(scene.gateway, 'gateway_watchers{kind="job"}')).toBe(0);
  });
});

it('parts of messages that are not complete are counted: too many of one caller close the socket', async () => {
  const sandbox = await startSandbox();
  const provider = await startTrustedProvider();
  const env = { ...environmentFor(sandbox), ...provider.env, MAX_BODY_BYTES: '8000000' };
  // A sixteenth of the heap is room for two such messages.
  const gateway = await spawnGateway({ ...env, NODE_OPTIONS: '--max-old-space-size=256' });
  const begin = async (sub: string) => {
    const socket = await initSocket(gateway, { authorization: `Bearer ${await provider.token({ sub })}` });
    // In one piece with a whole message and a ping, which must not make them forgotten.
    socket.connection.cork();
    socket.send({ type: 'pong' });
    socket.socket.send(`{"type":"ping","payload":{"filler":"${'x'.repeat(20_000)}`, { fin: false });
    socket.socket.ping();
    socket.connection.uncork();
    return socket;
  };
  const finish = async ({ socket, message }: Awaited<ReturnType<typeof begin>>) => {
    socket.send('"}}');
    await message(({ type }) => type === 'pong');
  };
  const [first, second] = [await begin('ada'), await begin('ada')];
  expect((await (await begin('ada')).closed).code).toBe(1013);
  await finish(await begin('bob'));
  first.end(); // and so gives up what it did not complete
  await whenMetric(gateway, 'gateway_open_streams{transport="ws"}', 2);
  for (let n = 0; n < 2; n += 1) await finish(await begin('ada'));
  await finish(second);
});
