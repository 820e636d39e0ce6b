import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import {
  environmentFor,
  type GatewayProcess,
  postQuery,
  spawnGateway,
  startTestGateway,
  type TestGateway,
} from '../../support/gateway.js';
import { post } from '../../support/post.js';
import { rawSocket } from '../../support/rawSocket.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { eventReader } from '../../support/streamReader.js';
import { until } from '../../support/until.js';

// What a caller makes the process hold is bounded: answers nobody reads, bodies that come slowly, operations that wait.

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Sends a request and reads no more of the answer than its first piece. */
async function halfRead(origin: string, body: string, authorization = '', length = body.length): Promise<string> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  socket.on('error', () => {});
  const head = [
    ...['POST /graphql HTTP/1.1', 'host: gateway', 'content-type: application/json', `content-length: ${length}`],
    ...(authorization && [`authorization: ${authorization}`]),
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  return new Promise((resolve) => {
    socket.once('data', (piece) => {
      socket.pause();
      resolve(piece.toString('latin1').split('\r\n')[0] ?? '');
    });
    socket.once('close', () => resolve('closed'));
  });
}

/** The first event of each subscription, each on a stream of its own. */
async function firstsOfStreams(origin: string, authorization: string, requests: readonly object[]) {
  const left = new AbortController();
  const firsts: string[] = [];
  for (const body of requests) {
    const response = await post(
      `${origin}/graphql/stream`,
      body,
      { accept: 'text/event-stream', authorization },
      { signal: left.signal },
    );
    firsts.push(response.ok ? JSON.stringify(await eventReader(response).next()) : await response.text());
  }
  return { firsts, end: () => left.abort() };
}

/** The first message of each subscription on one socket. */
async function firstsOnSocket(origin: string, authorization: string, requests: readonly object[]) {
  const socket = rawSocket(origin);
  await socket.init({ authorization });
  for (const [n, payload] of requests.entries()) socket.send({ id: `${n}`, type: 'subscribe', payload });
  const firsts = () => socket.received.filter(({ id }) => id !== undefined).map((message) => JSON.stringify(message));
  await until(() => firsts().length === requests.length);
  return { firsts: firsts(), end: socket.end };
}

const metadataTimes = (count: number) =>
  `query Q($id: ID!) { ${Array.from({ length: count }, (_, n) => `a${n}: taxpayerToken(taxpayerId: $id) { metadata }`).join(' ')} }`;

describe('a process with a heap of 256 MB', () => {
  let provider: TrustedProvider;
  let sandbox: Sandbox;
  let gateway: GatewayProcess;
  let id: string;
  let hostile: string;
  let honest: { readonly authorization: string };

  beforeAll(async () => {
    provider = await startTrustedProvider();
    sandbox = await startSandbox();
    id = sandbox.control.addTaxpayer({ metadata: { notes: 'x'.repeat(900_000) } }).id;
    gateway = await spawnGateway({
      ...environmentFor(sandbox),
      ...provider.env,
      RATE_LIMIT_PER_MINUTE: '0',
      // With young space as in Node.js 20 and 22: newer ones choose more, and what one caller may hold is a share of the sum.
      NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=16',
    });
    const claims = { scope: 'taxpayers:read taxpayers:any' };
    honest = { authorization: `Bearer ${await provider.token({ ...claims, sub: 'honest' })}` };
    await postQuery(gateway.origin, metadataTimes(1), { id }, honest);
  });

  let tests = 0;
  // A caller of its own for each test: what one took of the process's time is not held against the next.
  beforeEach(async () => {
    tests += 1;
    const claims = { scope: 'taxpayers:read taxpayers:any', sub: `hostile-${tests}` };
    hostile = `Bearer ${await provider.token(claims)}`;
  });

  it('refuses further large answers to a caller who does not read those before, and answers others', async () => {
    const body = JSON.stringify({ query: metadataTimes(8), variables: { id } });
    const lines: string[] = [];
    for (let n = 0; n < 25; n += 1) lines.push(await halfRead(gateway.origin, body, hostile));
    expect(lines.slice(0, 1)).toEqual(['HTTP/1.1 200 OK']);
    expect(lines.slice(3)).toEqual(Array(22).fill('HTTP/1.1 429 Too Many Requests'));
    const refused = await postQuery(gateway.origin, metadataTimes(8), { id }, { authorization: hostile });
    expect(refused.errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED', retryable: true } }]);
    // A small answer is not refused, once the caller's own work of the last second is over.
    await until(async () => {
      const small = await postQuery(gateway.origin, '{ __typename }', {}, { authorization: hostile });
      return (small.data as { __typename?: string } | undefined)?.__typename === 'Query';
    });
    const { data } = await postQuery(gateway.origin, metadataTimes(8), { id }, honest);
    expect(Object.keys(data ?? {})).toHaveLength(8);
    for (const socket of sockets.splice(0)) socket.destroy();
    await until(async () => {
      const { errors } = await postQuery(gateway.origin, metadataTimes(8), { id }, { authorization: hostile });
      return errors === undefined;
    });
  });

  it('refuses further bodies of a caller who does not end those before', async () => {
    const lines = Array.from({ length: 100 }, () => halfRead(gateway.origin, '{"query":"', hostile, 262_144));
    const first = await Promise.race(lines);
    expect(first).toBe('HTTP/1.1 429 Too Many Requests');
    expect((await postQuery(gateway.origin, '{ __typename }', {}, honest)).data).toEqual({ __typename: 'Query' });
    for (const socket of sockets.splice(0)) socket.destroy();
    await until(async () => {
      const headers = { 'content-type': 'application/json', authorization: hostile };
      const body = new Blob(['{"query":"{ __typename }"}']).stream(); // without a Content-Length
      const request = { method: 'POST', headers, body, duplex: 'half' };
      return (await fetch(`${gateway.origin}/graphql`, request)).status === 200;
    });
  });

  it('refuses further large requests of a caller whose operations wait, before they begin', async () => {
    const fault = { gate: 'g' } as const;
    sandbox.control.arm({ endpoint: 'taxpayerToken', times: 20, fault });
    const query = 'query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }';
    const statuses: number[] = [];
    const answers = sandbox.control.addTaxpayers(20).map(async (each) => {
      const variables = { id: each, more: 'x'.repeat(250_000) };
      statuses.push((await postQuery(gateway.origin, query, variables, { authorization: hostile })).status);
    });
    try {
      await until(() => statuses.length >= 16);
      const other = await postQuery(gateway.origin, '{ __typename }', {}, honest);
      expect(other.data).toEqual({ __typename: 'Query' });
      expect(new Set(statuses)).toEqual(new Set([429]));
    } finally {
      sandbox.control.disarmAll();
      sandbox.control.release('g');
    }
    await Promise.all(answers);
    expect(statuses.slice(16)).toEqual([200, 200, 200, 200]);
    expect(sandbox.control.counters().taxpayerToken).toBe(5);
    const again = () => postQuery(gateway.origin, query, { id, more: 'x'.repeat(250_000) }, { authorization: hostile });
    await until(async () => (await again()).status === 200);
  });

  it('counts the headers of requests that wait as well', async () => {
    sandbox.control.arm({ endpoint: 'taxpayerToken', times: 1, fault: { gate: 'h' } });
    const query = 'query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }';
    const [one] = sandbox.control.addTaxpayers(1);
    const headers = { authorization: hostile, 'x-filler': 'x'.repeat(14_000) };
    const statuses = Array.from({ length: 500 }, async () => {
      return (await postQuery(gateway.origin, query, { id: one }, headers)).status;
    });
    expect(await Promise.race(statuses)).toBe(429);
    sandbox.control.release('h');
    expect(await Promise.all(statuses)).toContain(200);
  });

  it.each(['event streams', 'one socket'])(
    'refuses further subscriptions of a caller with large variables, on %s',
    async (way) => {
      const query = 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }';
      const ids = sandbox.control.addTaxpayers(10);
      const parametersOf = (each: string) => ({ query, variables: { id: each, more: 'x'.repeat(250_000) } });
      const { firsts, end } = await (way === 'one socket' ? firstsOnSocket : firstsOfStreams)(
        gateway.origin,
        hostile,
        ids.map(parametersOf),
      );
      expect(firsts.filter((first) => first.includes('CREATED'))).toHaveLength(4);
      expect(firsts.filter((first) => first.includes('RATE_LIMITED'))).toHaveLength(6);
      end();
      await until(async () => {
        const again = await firstsOfStreams(gateway.origin, hostile, [parametersOf(ids[0] as string)]);
        again.end();
        return again.firsts[0]?.includes('CREATED') === true;
      });
    },
  );

  it('gives back the room of subscriptions that cannot begin', async () => {
    const query = 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }';
    const ids = [...Array<string>(10).fill(' '), id];
    const requests = ids.map((each) => ({ query, variables: { id: each, more: 'x'.repeat(250_000) } }));
    const { firsts, end } = await firstsOfStreams(gateway.origin, hostile, requests);
    end();
    expect(firsts.filter((first) => first.includes('BAD_USER_INPUT'))).toHaveLength(10);
    expect(firsts[10]).toContain('CREATED');
  });

  it('tells what a mutation did to a caller who has no room for its answer', async () => {
    const linker = `Bearer ${await provider.token({ sub: 'linker', scope: 'client-links:create taxpayers:read taxpayers:any' })}`;
    const held: Promise<unknown>[] = [];
    const { id: waiting } = sandbox.control.addTaxpayer();
    sandbox.control.arm({ endpoint: 'taxpayerToken', taxpayerId: waiting, fault: { gate: 'full' } });
    const query = 'query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }';
    // Requests that wait take the room, until not even one of 10,000 characters has any.
    for (const characters of [250_000, 50_000, 10_000]) {
      for (let waits = true; waits; ) {
        const variables = { id: waiting, more: 'x'.repeat(characters) };
        const read = postQuery(gateway.origin, query, variables, { authorization: linker });
        waits = await Promise.race([read.then(() => false), delay(300, true)]);
        if (waits) held.push(read);
      }
    }
    const url = `https://flow.example/${'u'.repeat(4000)}`;
    sandbox.control.arm({ endpoint: 'createClientLink', times: 1, fault: { set: { url } } });
    const urls = Array.from({ length: 55 }, (_, n) => `u${n}: url`).join(' ');
    const mutation = `mutation { createClientLink(input: {}) { clientLink { ${urls} } } }`;
    // It is admitted once the caller's own work of the last second is over.
    let answer = await postQuery(gateway.origin, mutation, {}, { authorization: linker });
    await until(async () => {
      if (answer.status === 429) answer = await postQuery(gateway.origin, mutation, {}, { authorization: linker });
      return answer.status !== 429;
    });
    expect([answer.status, answer.errors]).toEqual([200, undefined]);
    expect(JSON.stringify(answer.data).length).toBeGreaterThan(200_000);
    sandbox.control.disarmAll();
    sandbox.control.release('full');
    await Promise.all(held);
  });
});

describe('a gateway', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway({}, {}, 'on', { stallMs: 200 });
  });

  it('ends the connection of a reader who takes nothing of an answer', async () => {
    const { id } = gateway.sandbox.control.addTaxpayer({ metadata: { notes: 'x'.repeat(900_000) } });
    const body = JSON.stringify({ query: metadataTimes(8), variables: { id } });
    expect(await halfRead(gateway.origin, body)).toBe('HTTP/1.1 200 OK');
    let hasEnded = false;
    sockets[0]?.once('close', () => {
      hasEnded = true;
    });
    await until(() => {
      sockets[0]?.write('\r\n'); // answered with a reset once nobody is there
      return hasEnded;
    });
  });
});
