import { once } from 'node:events';
import { createServer } from 'node:http';
import { request as requestOverTls } from 'node:https';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { makeAuthority } from '../../support/certificate.js';
import {
  environmentFor,
  type GatewayProcess,
  post,
  postQuery,
  spawnGateway,
  startTrustedProvider,
  type Texts,
  type TrustedProvider,
} from '../../support/gateway.js';
import { rawHttp } from '../../support/rawHttp.js';
import { initSocket } from '../../support/rawSocket.js';
import { type Sandbox, startSandbox } from '../../support/sandbox.js';
import { scratch } from '../../support/scratch.js';
import { serve } from '../../support/serve.js';
import { eventReader } from '../../support/streamReader.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

// What a caller makes the process hold is bounded: answers nobody reads, bodies that come slowly, operations that wait.

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** Sends a request and reads no more of the answer than its first piece. */
async function halfRead(origin: string, body: string, headers: Texts = {}, length = body.length) {
  const { socket, write, closed } = rawHttp(origin);
  sockets.push(socket);
  const named = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const head = [
    'POST /graphql HTTP/1.1',
    'host: gateway',
    'content-type: application/json',
    `content-length: ${length}`,
  ];
  write(...head, ...named, '', body);
  const first = once(socket, 'data').then(([piece]) => {
    socket.pause();
    return String(piece).split('\r\n')[0] ?? '';
  });
  return Promise.race([first, closed.then(() => 'closed')]);
}

/** The first event of each subscription, each on a stream of its own, however long the caller's own work makes that wait. */
async function firstsOfStreams(origin: string, headers: Texts, requests: readonly object[]) {
  const left = new AbortController();
  const firsts: string[] = [];
  const first = async (body: object) => {
    const accept = 'text/event-stream';
    const { signal } = left;
    const response = await post(`${origin}/graphql/stream`, body, { ...headers, accept }, { signal });
    return response.ok ? JSON.stringify(await eventReader(response).next()) : await response.text();
  };
  for (const body of requests) {
    await until(async () => {
      const text = await first(body);
      if (text.includes('too much of the time')) return false; // it is in question what the caller holds
      return firsts.push(text) > 0;
    });
  }
  return { firsts, end: () => left.abort() };
}

/** The first message of each subscription on one socket. */
async function firstsOnSocket(origin: string, headers: Texts, requests: readonly object[]) {
  const socket = await initSocket({ origin }, headers);
  for (const [n, payload] of requests.entries()) socket.subscribe(payload, `${n}`);
  const firsts = () => socket.received.filter(({ id }) => id !== undefined).map((message) => JSON.stringify(message));
  await until(() => firsts().length === requests.length);
  return { firsts: firsts(), end: socket.end };
}

const nameQuery = 'query Q($id: ID!) { taxpayerToken(taxpayerId: $id) { name } }';
/** A subscription with large variables. */
const largeWatch = (id: string) => ({
  query: 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }',
  variables: { id, more: 'x'.repeat(250_000) },
});
const eventsOfMetadata = `subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { ${times(8, (n) => `a${n}: metadata`).join(' ')} } }`;
const metadataTimes = (count: number) =>
  `query Q($id: ID!) { ${times(count, (n) => `a${n}: taxpayerToken(taxpayerId: $id) { metadata }`).join(' ')} }`;

describe('a process with a heap of 256 MB', () => {
  let provider: TrustedProvider;
  let sandbox: Sandbox;
  let gateway: GatewayProcess;
  let id: string;
  let hostile: Texts;
  let honest: Texts;

  beforeAll(async () => {
    provider = await startTrustedProvider();
    sandbox = await startSandbox();
    id = sandbox.addTaxpayer({ metadata: { notes: 'x'.repeat(900_000) } }).id;
    gateway = await spawnGateway({
      ...environmentFor(sandbox),
      ...provider.env,
      RATE_LIMIT_PER_MINUTE: '0',
      NODE_OPTIONS: '--max-old-space-size=256',
    });
    const claims = { scope: 'taxpayers:read taxpayers:any' };
    honest = { authorization: `Bearer ${await provider.token({ ...claims, sub: 'honest' })}` };
    await ask(honest, metadataTimes(1), { id });
  });

  const ask = (who: Texts, query: string, variables: object = {}) => postQuery(gateway.origin, query, variables, who);

  let tests = 0;
  // A caller of its own for each test: what one took of the process's time is not held against the next.
  beforeEach(async () => {
    tests += 1;
    const claims = { scope: 'taxpayers:read taxpayers:any', sub: `hostile-${tests}` };
    hostile = { authorization: `Bearer ${await provider.token(claims)}` };
  });

  it('refuses further large answers to a caller who does not read those before, and answers others', async () => {
    const body = JSON.stringify({ query: metadataTimes(8), variables: { id } });
    const lines: string[] = [];
    for (let n = 0; n < 25; n += 1) lines.push(await halfRead(gateway.origin, body, hostile));
    expect(lines.slice(0, 1)).toEqual(['HTTP/1.1 200 OK']);
    expect(lines.slice(3)).toEqual(Array(22).fill('HTTP/1.1 429 Too Many Requests'));
    const refused = await ask(hostile, metadataTimes(8), { id });
    expect(refused.errors).toMatchObject([{ extensions: { code: 'RATE_LIMITED', retryable: true } }]);
    // A small answer is not refused, once the caller's own work of the last second is over.
    await until(async () => (await ask(hostile, '{ __typename }')).errors === undefined);
    const { data } = await ask(honest, metadataTimes(8), { id });
    expect(Object.keys(data ?? {})).toHaveLength(8);
    for (const socket of sockets.splice(0)) socket.destroy();
    for (let n = 0; n < 5; n += 1) {
      await until(async () => (await ask(hostile, metadataTimes(8), { id })).errors === undefined);
    }
  });

  it.each([
    ['answers', metadataTimes(8)],
    ['events', eventsOfMetadata],
  ])('survives the %s that many callers do not read', async (_, query) => {
    const body = JSON.stringify({ query, variables: { id } });
    const lines = times(200, async (n) => {
      const sub = `of-many-${n % 40}`;
      const token = await provider.token({ scope: 'taxpayers:read taxpayers:any', sub });
      return halfRead(gateway.origin, body, { accept: 'text/event-stream', authorization: `Bearer ${token}` });
    });
    const begun = (await Promise.all(lines)).filter((line) => line.includes('200'));
    if (query !== eventsOfMetadata) expect(begun.length).toBeLessThan(10);
    expect((await ask(honest, '{ __typename }')).data).toEqual({ __typename: 'Query' });
  });

  it('refuses further bodies of a caller who does not end those before', async () => {
    const lines = times(100, () => halfRead(gateway.origin, '{"query":"', hostile, 262_144));
    const first = await Promise.race(lines);
    expect(first).toBe('HTTP/1.1 429 Too Many Requests');
    expect((await ask(honest, '{ __typename }')).data).toEqual({ __typename: 'Query' });
    for (const socket of sockets.splice(0)) socket.destroy();
    await until(async () => {
      const headers = { 'content-type': 'application/json', ...hostile };
      const body = new Blob(['{"query":"{ __typename }"}']).stream(); // without a Content-Length
      const request = { method: 'POST', headers, body, duplex: 'half' };
      return (await fetch(`${gateway.origin}/graphql`, request)).status === 200;
    });
  });

  it('refuses further large requests of a caller whose operations wait, before they begin', async () => {
    sandbox.arm({ endpoint: 'taxpayerToken', times: 20, fault: { gate: 'g' } });
    const statuses: number[] = [];
    const answers = sandbox.addTaxpayers(20).map(async (each) => {
      const variables = { id: each, more: 'x'.repeat(250_000) };
      statuses.push((await ask(hostile, nameQuery, variables)).status);
    });
    try {
      await until(() => statuses.length >= 16);
      const other = await ask(honest, '{ __typename }');
      expect(other.data).toEqual({ __typename: 'Query' });
      expect(new Set(statuses)).toEqual(new Set([429]));
    } finally {
      sandbox.disarmAll();
      sandbox.release('g');
    }
    await Promise.all(answers);
    expect(statuses.slice(16)).toEqual([200, 200, 200, 200]);
    expect(sandbox.counters().taxpayerToken).toBe(5); // with the one before all tests
    const again = () => ask(hostile, nameQuery, { id, more: 'x'.repeat(250_000) });
    await until(async () => (await again()).status === 200);
  });

  it('counts the fields of operations that wait, which may all have failed', async () => {
    sandbox.arm({ endpoint: 'taxpayerToken', times: 1, fault: { gate: 'f' } });
    const [slow] = sandbox.addTaxpayers(1);
    const fields = times(24, (n) => `a${n}: accessToken`).join(' ');
    const entities = `_entities(representations: [${'$r '.repeat(180)}]) { ... on TaxpayerToken { ${fields} } }`;
    const query = `query ($slow: ID!, $r: _Any!) { taxpayerToken(taxpayerId: $slow) { name } ${entities} }`;
    const r = { __typename: 'TaxpayerToken', taxpayerId: id };
    const asked: Promise<unknown>[] = [];
    let refusals = '';
    await until(() => {
      asked.push(ask(hostile, query, { slow, r }).then(({ errors }) => (refusals += errors?.[0]?.message)));
      return refusals.includes('bytes of requests under way');
    });
    sandbox.release('f');
    await Promise.all(asked);
  });

  it('counts the headers of requests that wait as well', async () => {
    sandbox.arm({ endpoint: 'taxpayerToken', times: 1, fault: { gate: 'h' } });
    const [one] = sandbox.addTaxpayers(1);
    const headers = { ...hostile, 'x-filler': 'x'.repeat(3000) };
    const statuses = times(1800, async () => {
      return (await ask(headers, nameQuery, { id: one })).status;
    });
    expect(await Promise.race(statuses)).toBe(429);
    sandbox.release('h');
    expect(await Promise.all(statuses)).toContain(200);
  });

  it.each(['event streams', 'one socket'])(
    'refuses further subscriptions of a caller with large variables, on %s',
    async (way) => {
      const ids = sandbox.addTaxpayers(10);
      const { firsts, end } = await (way === 'one socket' ? firstsOnSocket : firstsOfStreams)(
        gateway.origin,
        hostile,
        ids.map(largeWatch),
      );
      expect(firsts.filter((first) => first.includes('CREATED'))).toHaveLength(4);
      expect(firsts.filter((first) => first.includes('RATE_LIMITED'))).toHaveLength(6);
      end();
      await until(async () => {
        const again = await firstsOfStreams(gateway.origin, hostile, [largeWatch(ids[0] as string)]);
        again.end();
        return again.firsts[0]?.includes('CREATED') === true;
      });
    },
  );

  it('counts the tokens of documents that wait, of which it keeps none', async () => {
    const documents = sandbox.addTaxpayers(120).map((each, n) => ({
      query: `subscription W${n} { taxpayerTokenUpdated(taxpayerId: "${each}") { ${'...{status}'.repeat(100)} } }`,
    }));
    const { firsts, end } = await firstsOfStreams(gateway.origin, hostile, documents);
    end();
    const begun = firsts.filter((first) => first.includes('CREATED')).length;
    const refused = firsts.filter((first) => first.includes('RATE_LIMITED'));
    expect(refused).toHaveLength(120 - begun);
    expect(String(refused)).toContain('At most'); // where the process is busy, some are refused for the time they would take
    expect(begun).toBeGreaterThan(40);
    expect(begun).toBeLessThan(110); // by its characters alone, each would be within what is not counted
  });

  it('gives back the room of subscriptions that cannot begin', async () => {
    const ids = [...Array<string>(10).fill(' '), id];
    const { firsts, end } = await firstsOfStreams(gateway.origin, hostile, ids.map(largeWatch));
    end();
    expect(firsts.filter((first) => first.includes('BAD_USER_INPUT'))).toHaveLength(10);
    expect(firsts[10]).toContain('CREATED');
  });

  it('tells what a mutation did to a caller who has no room for its answer', async () => {
    const scope = 'client-links:create taxpayers:read taxpayers:any';
    const linker = { authorization: `Bearer ${await provider.token({ sub: 'linker', scope })}` };
    const held: Promise<unknown>[] = [];
    const { id: waiting } = sandbox.addTaxpayer();
    sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: waiting, fault: { gate: 'full' } });
    // Requests that wait take the room, until not even one of 10,000 characters has any.
    for (const characters of [250_000, 50_000, 10_000]) {
      for (let waits = true; waits; ) {
        const variables = { id: waiting, more: 'x'.repeat(characters) };
        const read = ask(linker, nameQuery, variables);
        waits = await Promise.race([read.then(() => false), delay(300, true)]);
        if (waits) held.push(read);
      }
    }
    const url = `https://flow.example/${'u'.repeat(4000)}`;
    sandbox.arm({ endpoint: 'createClientLink', times: 1, fault: { set: { url } } });
    const urls = times(55, (n) => `u${n}: url`).join(' ');
    const mutation = `mutation { createClientLink(input: {}) { clientLink { ${urls} } } }`;
    // It is admitted once the caller's own work of the last second is over.
    let answer = await ask(linker, mutation);
    await until(async () => {
      if (answer.status === 429) answer = await ask(linker, mutation);
      return answer.status !== 429;
    });
    expect([answer.status, answer.errors]).toEqual([200, undefined]);
    expect(JSON.stringify(answer.data).length).toBeGreaterThan(200_000);
    sandbox.disarmAll();
    sandbox.release('full');
    await Promise.all(held);
  });
});

it('small bodies in chunks that wait for their turn take little more than their bytes', async () => {
  const gateway = await spawnGateway({ PORT: '0' });
  const text = '{"query":"{ __typename }"}';
  const chunks = [text.slice(0, 5), text.slice(5), ''].map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
  const head = [
    'POST /graphql HTTP/1.1',
    'host: gateway',
    'content-type: application/json',
    'transfer-encoding: chunked',
  ];
  const request = `${head.join('\r\n')}\r\n\r\n${chunks.join('')}`;
  const before = gateway.peakKiB();
  const ended = times(500, async () => {
    const { write, answer } = rawHttp(gateway.origin);
    write(request.repeat(4));
    for (let n = 0; n < 4; n += 1) expect((await answer())?.status).toBe(200);
  });
  await Promise.all(ended);
  expect(gateway.peakKiB() - before).toBeLessThan(150_000); // 2,000 times MAX_BODY_BYTES would be 500 MB
});

it('nothing is kept of the events that open streams have sent, also over TLS', async () => {
  const sandbox = await startSandbox();
  const { id } = sandbox.addTaxpayer({ metadata: { notes: Array(9000).fill('x'.repeat(95)) } });
  const { certFile, keyFile } = makeAuthority(scratch(), 'gateway');
  const gateway = await spawnGateway({
    ...environmentFor(sandbox),
    TLS_CERT_FILE: certFile,
    TLS_KEY_FILE: keyFile,
    NODE_OPTIONS: '--max-old-space-size=96',
  });
  const before = gateway.peakKiB();
  for (let n = 0; n < 20; n += 1) {
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json' };
    const options = { method: 'POST', headers, rejectUnauthorized: false, agent: false };
    const request = requestOverTls(`${gateway.origin.replace('http', 'https')}/graphql`, options);
    const [response] = await once(
      request.end(JSON.stringify({ query: eventsOfMetadata, variables: { id } })),
      'response',
    );
    let bytes = 0;
    await new Promise<void>((resolve) => {
      response.on('data', (piece: Buffer) => {
        bytes += piece.length;
        if (bytes > 7_000_000) resolve();
      });
    });
  }
  expect(gateway.peakKiB() - before).toBeLessThan(120_000); // 20 events have 144 MB
});

it('nothing is kept of the records that open subscriptions watch, which may be read again', async () => {
  const sandbox = await startSandbox();
  const bounds = { TOKEN_BUDGET_PER_HOUR: '0', TOKEN_FRESH_SECONDS: '3600', NODE_OPTIONS: '--max-old-space-size=64' };
  const gateway = await spawnGateway({ ...environmentFor(sandbox), ...bounds });
  const socket = await initSocket(gateway);
  const metadata = { notes: Array(9000).fill('x'.repeat(95)) };
  const ids = sandbox.addTaxpayers(60, { metadata });
  for (const [n, id] of [...ids, ids[0]].entries()) {
    const query = 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }';
    socket.subscribe({ query, variables: { id } }, `${n}`);
    expect((await socket.answerTo(`${n}`)).type).toBe('next');
  }
});

it('neither the pages of a failing service nor the documents with the ids are kept with its failures', async () => {
  const service = createServer((_, response) => response.end(`<html>${'x'.repeat(300_000)}`));
  const env = environmentFor({ url: await serve(service), clientId: 'id', clientSecret: 'a secret of the test' });
  const bounds = { TOKEN_BUDGET_PER_HOUR: '0', NODE_OPTIONS: '--max-old-space-size=64' };
  const gateway = await spawnGateway({ ...env, ...bounds });
  for (let n = 0; n < 250; n += 1) {
    const query = `{ taxpayerToken(taxpayerId: "the-taxpayer-${n}") { status } } #${'x'.repeat(250_000)}`;
    const { errors } = await postQuery(gateway.origin, query, {});
    expect(errors?.[0]?.extensions.code).toBe('UPSTREAM_INVALID_RESPONSE');
  }
});
