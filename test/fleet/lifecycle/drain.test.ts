import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import {
  environmentFor,
  type GatewayProcess,
  linesWith,
  post,
  postQuery,
  spawnGateway,
  startTestGateway,
  type Texts,
} from '../../support/gateway.js';
import { rawHttp } from '../../support/rawHttp.js';
import { startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const sandbox = await startSandbox();

let gateway: GatewayProcess;

/** What became of one request. */
interface Outcome {
  readonly connected: boolean;
  /** undefined when no answer came. */
  readonly status?: number;
  readonly connection?: string | undefined;
  readonly body?: string;
  readonly error?: string | undefined;
}

/** Sends one request, on a connection of its own unless an agent keeps some. Never rejects. */
function ask(origin: string, path = '/graphql', query = '{ __typename }', agent: Agent | false = false) {
  return new Promise<Outcome>((resolve) => {
    let connected = false;
    const isPost = path === '/graphql';
    const headers = { connection: 'keep-alive', ...(isPost && { 'content-type': 'application/json' }) };
    const sent = request(`${origin}${path}`, { method: isPost ? 'POST' : 'GET', agent, headers }, async (response) => {
      const { statusCode: status = 0, headers } = response;
      try {
        resolve({ connected: true, status, connection: headers.connection, body: await text(response) });
      } catch (error) {
        resolve({ connected: true, error: (error as Error).message });
      }
    });
    sent.once('socket', (socket) => socket.once('connect', () => (connected = true)));
    sent.once('error', ({ message }) => resolve({ connected, error: message }));
    sent.end(isPost ? JSON.stringify({ query }) : undefined);
  });
}

const start = async (env: Texts = {}) => {
  const usual = { RATE_LIMIT_PER_MINUTE: '0', DRAIN_TIMEOUT_MS: '30000' };
  gateway = await spawnGateway({ ...environmentFor(sandbox), ...usual, ...env });
};

const typename = () => '{ __typename }';
let jobs = 0;
/** Another one each time, so that every answer waits for the service. */
const job = () => `{ refreshJob(taxpayerId: "${sandbox.demo.taxpayerIds.authorized}", jobId: "${jobs++}") { status } }`;

it.each([
  ['new connections', false, typename, '"__typename":"Query"'],
  ['connections that are kept', new Agent({ keepAlive: true }), job, 'NOT_FOUND'],
] as const)(
  'told to end under load, a gateway answers every client that has connected, and then refuses connections: %s',
  async (_, agent, query, answer) => {
    sandbox.setLatency(60);
    await start();
    const outcomes: Outcome[] = [];
    const last: Outcome[] = [];
    let clients: Promise<void>[] = [];
    await new Promise<void>((resolve) => {
      const keepAsking = async () => {
        for (;;) {
          const outcome = await ask(gateway.origin, '/graphql', query(), agent);
          if (!outcome.connected) return void last.push(outcome);
          outcomes.push(outcome);
          if (outcomes.length === 100) resolve();
        }
      };
      // So few that none of them is late on a busy machine: an idle connection is closed after three seconds.
      clients = times(20, keepAsking);
    });
    const answeredBefore = outcomes.length;
    expect(await gateway.stop()).toBe(0);
    await Promise.all(clients);
    sandbox.setLatency(0);
    expect(outcomes.filter(({ body }) => !body?.includes(answer))).toEqual([]);
    expect(outcomes.length).toBeGreaterThan(answeredBefore + 20);
    expect(new Set(last.map(({ error }) => error?.split(' ')[1]))).toEqual(new Set(['ECONNREFUSED']));
  },
);

describe('a gateway that is told to end', () => {
  it('is not ready at once, and still answers new connections for a moment, with connection: close', async () => {
    await start();
    expect(await ask(gateway.origin, '/health/ready')).toMatchObject({ status: 200, connection: 'keep-alive' });
    const stopped = gateway.stop();
    await until(async () => (await ask(gateway.origin, '/health/ready')).status === 503);
    expect(await ask(gateway.origin, '/health/ready')).toMatchObject({ status: 503, connection: 'close' });
    expect(await ask(gateway.origin)).toMatchObject({ status: 200, connection: 'close' });
    expect(await stopped).toBe(0);
    expect(await ask(gateway.origin)).toMatchObject({ connected: false });
    const lines = linesWith([gateway.output()], {});
    expect(lines.filter(({ msg }) => ['ready', 'draining', 'stopped'].includes(msg))).toMatchObject([
      { msg: 'ready', version: expect.any(String), store: expect.any(String), service: expect.any(String) },
      { msg: 'draining', signal: 'SIGTERM' },
      { msg: 'stopped', ms: expect.any(Number) },
    ]);
  });

  it('waits for what the service was asked for a client that has gone: a link is not lost', async () => {
    const directory = scratch();
    await start({ CACHE_URL: `file:${directory}` });
    const gate = 'after the signal';
    sandbox.arm({ endpoint: 'createClientLink', fault: { gate }, times: 1 });
    const called = sandbox.whenCalled('createClientLink', 1);
    const create = 'mutation { createClientLink(input: { idempotencyKey: "k" }) { replayed } }';
    const left = new AbortController();
    const sent = post(`${gateway.origin}/graphql`, { query: create }, {}, { signal: left.signal });
    await called;
    left.abort();
    await expect(sent).rejects.toThrow('aborted');
    const stopped = gateway.stop();
    await until(async () => !(await ask(gateway.origin)).connected);
    sandbox.release(gate);
    expect(await stopped).toBe(0);
    await start({ CACHE_URL: `file:${directory}` });
    expect(await postQuery(gateway.origin, create)).toMatchObject({ data: { createClientLink: { replayed: true } } });
    expect(await gateway.stop()).toBe(0);
  });

  it('answers requests that come together on an idle connection, for a moment after the last new one, and does not wait for those that stay idle or on which nothing was sent', async () => {
    await start();
    const answersOn = async ({ write, answer }: ReturnType<typeof rawHttp>) => {
      const lines = ['POST /graphql HTTP/1.1', 'host: gateway', 'content-type: application/json', 'content-length: 24'];
      write([...lines, '', '{"query":"{__typename}"}'].join('\r\n').repeat(2));
      expect([await answer(), await answer()]).toMatchObject([{ status: 200 }, { status: 200 }]);
    };
    const kept = [rawHttp(gateway.origin), rawHttp(gateway.origin)] as const;
    for (const connection of kept) await answersOn(connection);
    const { hostname, port } = new URL(gateway.origin);
    const silent = connect(Number(port), hostname).on('error', () => {});
    await once(silent, 'connect');
    const startedAt = performance.now();
    const stopped = gateway.stop();
    await until(async () => !(await ask(gateway.origin)).connected);
    await answersOn(kept[0]);
    expect(await stopped).toBe(0);
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });

  it('answers what takes longer than idle connections are kept', async () => {
    await start({ DRAIN_TIMEOUT_MS: '4000' });
    const { id } = sandbox.addTaxpayer();
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { gate: 'long' }, times: 1 });
    const called = sandbox.whenCalled('taxpayerToken', sandbox.counters().taxpayerToken + 1);
    const answer = postQuery(gateway.origin, `{ taxpayerToken(taxpayerId: "${id}") { status } }`);
    await called;
    const stopped = gateway.stop();
    await delay(2500); // of 4000; idle connections end after 2000
    sandbox.release('long');
    expect((await answer).data).toEqual({ taxpayerToken: { status: 'CREATED' } });
    expect(await stopped).toBe(0);
  });

  it('with DRAIN_TIMEOUT_MS=0 accepts no connection any more', async () => {
    const { origin, stop } = await startTestGateway({ DRAIN_TIMEOUT_MS: '0' });
    const stopped = stop();
    expect(await ask(origin)).toMatchObject({ connected: false });
    await stopped;
  });
});
