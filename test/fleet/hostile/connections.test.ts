import { once } from 'node:events';
import { type OutgoingHttpHeaders, request } from 'node:http';
import { connect, Socket } from 'node:net';
import { BoundedRequest } from '../../../src/http/BoundedRequest.js';
import { endOfTurn } from '../../../src/process/pause.js';
import {
  environmentFor,
  type GatewayProcess,
  spawnGateway,
  startTestGateway,
  startTrustedProvider,
  whenMetric,
} from '../../support/gateway.js';
import { addJob } from '../../support/liveJob.js';
import { rawHttp } from '../../support/rawHttp.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const provider = await startTrustedProvider();
const gateway = await startTestGateway(provider.env);
const bearer = await provider.watcherOf([]);
const authorization = `Authorization: ${bearer}`;

const typename = '{"query":"{ __typename }"}';
const host = 'Host: x';
const json = 'Content-Type: application/json';
const handshake = [
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Protocol: graphql-transport-ws',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
];
const lengthOf = (body: string) => `Content-Length: ${body.length}`;
/** A request that must not be read as one: it is within the body of another. */
const smuggled = ['GET /health/live HTTP/1.1', host, '', 'x'.repeat(60_000)].join('\r\n');

describe('a connection', () => {
  it.each<[string, number, string[]]>([
    ['a path that is not there', 404, ['GET /nowhere HTTP/1.1', host, '', '']],
    ['no token', 401, ['POST /graphql HTTP/1.1', host, json, lengthOf(typename), '', typename]],
    ['another method', 405, ['DELETE /graphql HTTP/1.1', host, authorization, '', '']],
    ['a short body that is not read', 404, ['POST /nowhere HTTP/1.1', host, lengthOf(smuggled), '', smuggled]],
    [
      'a body that is not JSON',
      400,
      ['POST /graphql HTTP/1.1', host, json, authorization, 'Content-Length: 1', '', '{'],
    ],
  ])('serves the next request after the refusal of %s', async (_, status, lines) => {
    const connection = rawHttp(gateway.origin);
    connection.write(...lines);
    const refused = await connection.answer();
    expect([refused?.status, refused?.headers.get('connection')]).toEqual([status, 'keep-alive']);
    connection.write('POST /graphql HTTP/1.1', host, json, authorization, lengthOf(typename), '', typename);
    expect(await connection.answer()).toMatchObject({ status: 200, body: '{"data":{"__typename":"Query"}}' });
  });

  it('keeps an idle connection longer than balancers do, which use one for up to ten minutes', async () => {
    const response = await fetch(`${gateway.origin}/health/live`);
    expect(response.headers.get('keep-alive')).toBe('timeout=620');
  });

  it.each<[string, string, string[]]>([
    ['a long body', '/nowhere', ['Content-Length: 100000', '', smuggled]],
    ['a long body without a token', '/graphql', ['Content-Length: 100000', json, '', smuggled]],
    [
      'a body of unknown length',
      '/graphql',
      ['Transfer-Encoding: chunked', json, '', `${smuggled.length.toString(16)}\r\n${smuggled}\r\n`],
    ],
  ])('ends after the refusal of %s, and nothing of the body is read as a request', async (_, path, lines) => {
    const connection = rawHttp(gateway.origin);
    connection.write(`POST ${path} HTTP/1.1`, host, ...lines);
    const refused = await connection.answer();
    expect([refused?.status, refused?.headers.get('connection')]).toEqual([path === '/graphql' ? 401 : 404, 'close']);
    expect(await connection.answer()).toBeUndefined();
  });

  it.each([
    ['POST', 'http://gateway.example/graphql', 200],
    ['GET', 'http://gateway.example/graphql?query=%7B__typename%7D', 200],
    ['GET', 'http://gateway.example', 200],
    ['OPTIONS', '*', 404],
  ])('answers %s %s, as a proxy may send it, by its path', async (method, target, status) => {
    const connection = rawHttp(gateway.origin);
    const body = method === 'POST' ? typename : '';
    connection.write(
      `${method} ${target} HTTP/1.1`,
      'Host: gateway.example',
      ...[json, authorization, lengthOf(body), '', body],
    );
    const answer = await connection.answer();
    expect(answer?.status).toBe(status);
    if (target.includes('/graphql')) expect(answer?.body).toBe('{"data":{"__typename":"Query"}}');
  });
});

describe('a body that is refused', () => {
  let other: GatewayProcess; // in a process of its own, so that it can answer while this one writes
  beforeAll(async () => {
    other = await spawnGateway({ ...environmentFor(gateway.sandbox), ...provider.env });
  });

  const length = { 'content-length': '8000000' };
  const chunks = { 'transfer-encoding': 'chunked' };
  const events = { accept: 'text/event-stream' };
  const h2c = { connection: 'upgrade', upgrade: 'h2c' };

  it.each<[string, number, string, OutgoingHttpHeaders]>([
    ['too large', 413, '/graphql', { ...length, authorization: bearer }],
    ['too large, on the path of streams', 413, '/graphql/stream', { ...events, ...chunks, authorization: bearer }],
    ['too large, with an upgrade', 413, '/graphql', { ...h2c, ...length, authorization: bearer }],
    ['without a token', 401, '/graphql', length],
  ])('because it is %s: a client that is still sending it gets the answer', async (_, status, path, rest) => {
    const headers = { 'content-type': 'application/json', ...rest };
    const body = Buffer.alloc(8_000_000, 'x');
    const send = () =>
      new Promise<number | string | undefined>((resolve) => {
        const sent = request(other.origin + path, { method: 'POST', agent: false, headers });
        sent.on('response', (answer) => resolve(answer.resume().statusCode));
        sent.on('error', ({ message }) => resolve(message)).end(body);
      });
    for (const answer of await Promise.all([send(), send(), send(), send()])) expect(answer).toBe(status);
  });

  it.each([
    ['/graphql', 401, ['Content-Length: 1000000000', '']],
    ['/graphql/stream', 413, [authorization, 'Accept: text/event-stream', 'Content-Length: 1000000000', '']],
    ['/graphql', 413, [authorization, 'Transfer-Encoding: chunked', '', '3b9aca00']],
  ])('is not read on: POST %s, answered with %i, however long its client goes on', async (path, status, lines) => {
    const { hostname, port } = new URL(other.origin);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }).on('error', () => {});
    const answered = once(socket, 'data');
    socket.write([`POST ${path} HTTP/1.1`, host, json, ...lines, ''].join('\r\n'));
    const piece = Buffer.alloc(65_536, 'x');
    const wrote = () => new Promise<boolean>((resolve) => socket.write(piece, (error) => resolve(!error)));
    let taken = 0;
    while (taken < 1_000_000_000 && (await wrote())) taken += piece.length;
    expect(String(await answered)).toMatch(`HTTP/1.1 ${status} `);
    expect(taken).toBeLessThan(64_000_000); // most of it waits in buffers of the system
    socket.destroy();
  });
});

it('an upgrade offered behind a request that is not answered yet is declined, and the answers come in order', async () => {
  const { sandbox } = gateway;
  const { id } = sandbox.addTaxpayer();
  sandbox.arm({ endpoint: 'taxpayerToken', taxpayerId: id, fault: { gate: 'slow' } });
  const body = JSON.stringify({ query: `{ taxpayerToken(taxpayerId: "${id}") { status } }` });
  const allowed = `Authorization: ${await provider.watcherOf([id], 300, 'taxpayer-tokens:read taxpayers:read')}`;
  const slow = ['POST /graphql HTTP/1.1', host, json, allowed, lengthOf(body), '', body];
  const upgrade = ['Connection: Upgrade', 'Upgrade: h2c'];
  const offer = ['GET /graphql?query=%7B__typename%7D HTTP/1.1', host, json, authorization, ...upgrade, '', ''];
  const connection = rawHttp(gateway.origin);
  connection.write(slow.join('\r\n') + offer.join('\r\n'));
  await until(() => sandbox.release('slow') > 0);
  expect(await connection.answer()).toMatchObject({ body: '{"data":{"taxpayerToken":{"status":"CREATED"}}}' });
  expect(await connection.answer()).toMatchObject({ status: 200, body: '{"data":{"__typename":"Query"}}' });
  connection.write('GET /health/live HTTP/1.1', host, '', '');
  expect(await connection.answer()).toMatchObject({ status: 200, body: '{"status":"live"}\n' });
});

it('nothing may follow a request without Host, which Node.js refuses itself', () => {
  const socket = new Socket();
  const isTooMany = () => Object.assign(new BoundedRequest(socket), { httpVersion: '1.1' }).upgrade;
  expect([isTooMany(), isTooMany()]).toEqual([false, true]);
});

it.each(['', 'Expect: x\r\n'])(
  'a connection may pipeline four requests, and is closed at one more: %j',
  async (more) => {
    const live = `GET /health/live HTTP/1.1\r\n${host}\r\n${more}\r\n`;
    const connection = rawHttp(gateway.origin);
    connection.write(live.repeat(4));
    for (let n = 0; n < 4; n += 1) expect(await connection.answer()).toMatchObject({ status: 200 });
    connection.write(live.repeat(5));
    await connection.closed;
  },
);

it('a request has at most 200 headers: a token behind them is not seen', async () => {
  const status = async (headers: number, body = '') => {
    const connection = rawHttp(gateway.origin);
    const many = times(headers, (n) => `x-${n}: y`);
    connection.write('POST /graphql HTTP/1.1', host, json, ...many, lengthOf(typename), authorization, '', body);
    const answer = await connection.answer();
    if (!body) await connection.closed;
    return answer?.status;
  };
  expect(await status(100, typename)).toBe(200);
  expect([401, 431]).toContain(await status(200)); // 431: since CVE-2026-58044 Node.js refuses what it ignored before
});

const [nowhere, upgrade] = [
  ['GET /nowhere HTTP/1.1', host, '', ''],
  ['GET /graphql HTTP/1.1', host, 'Connection: Upgrade', 'Upgrade: websocket', ...handshake, '', ''],
];

it.each<[string, number, number, string[]]>([
  ['other paths', 404, 4, nowhere],
  ['WebSockets', 101, 1, upgrade],
])('requests for %s come in turn: an operation does not wait for all of them', async (_, status, each, lines) => {
  const connections = await Promise.all(
    times(100, async () => {
      const connection = rawHttp(gateway.origin);
      connection.write(...nowhere);
      await connection.answer();
      return connection;
    }),
  );
  let answered = 0;
  const order: number[] = [];
  const all = connections.map(async (connection, place) => {
    connection.write(lines.join('\r\n').repeat(each));
    for (let n = 0; n < each; n += 1) {
      expect(await connection.answer()).toMatchObject({ status });
      answered += 1;
    }
    order.push(place);
  });
  const operation = rawHttp(gateway.origin);
  operation.write('POST http://x/graphql HTTP/1.1', host, json, authorization, lengthOf(typename), '', typename);
  expect(await operation.answer()).toMatchObject({ status: 200 });
  expect(answered).toBeLessThan(50 * each);
  await Promise.all(all);
  expect(order.at(-1)).toBeGreaterThan(90); // those that came first were answered first
  for (const connection of connections) connection.end();
});

it('a WebSocket that is asked for before an earlier answer ends the connection', async () => {
  const connection = rawHttp(gateway.origin);
  connection.write(...nowhere, ...upgrade.slice(0, 4), '', '');
  await connection.closed;
});

it('a body may come in many pieces, but not in very many tiny ones', async () => {
  const send = (pieces: number, bytes: number) => {
    const filler = 'x'.repeat(pieces * bytes - 53);
    const body = JSON.stringify({ query: '{ __typename }', extensions: { filler } });
    const chunks = body.replace(new RegExp(`.{${bytes}}`, 'g'), `${bytes.toString(16)}\r\n$&\r\n`);
    const connection = rawHttp(gateway.origin);
    const chunked = 'transfer-encoding: chunked';
    connection.write('POST /graphql HTTP/1.1', host, json, authorization, chunked, '', `${chunks}0`, '', '');
    return connection;
  };
  expect(await send(399, 3).answer()).toMatchObject({ status: 200, body: '{"data":{"__typename":"Query"}}' });
  const many = send(401, 63);
  await many.closed;
  expect(await many.answer()).toBeUndefined();
  expect(await send(401, 65).answer()).toMatchObject({ status: 200 }); // by a parser that was used before
});

it('a malformed WebSocket message that comes while earlier ones are being read, with more behind it, ends only its connection', async () => {
  const { socket, write, answer, closed } = rawHttp(gateway.origin);
  socket.setNoDelay();
  write(...upgrade);
  expect(await answer()).toMatchObject({ status: 101 });
  const [pings, notUtf8, more] = ['\x89\x80mask'.repeat(15), '\x81\x81mask\x92', 'more'];
  for (const bytes of [pings, notUtf8, more]) {
    write(bytes);
    for (let turn = 0; turn < 3; turn += 1) await endOfTurn(); // a ping is read in each
  }
  await closed; // and nothing was thrown, which would end the process
});

it('pipelined requests of a client that has gone end, and do not keep a gateway from stopping', async () => {
  const stopping = await startTestGateway({ DRAIN_TIMEOUT_MS: '20000' });
  const query =
    'query ($taxpayerId: ID!, $jobId: ID!) { refreshJob(taxpayerId: $taxpayerId, jobId: $jobId, waitSeconds: 300) { status } }';
  const body = JSON.stringify({ query, variables: addJob(stopping) });
  const lines = ['POST /graphql HTTP/1.1', host, json, lengthOf(body), '', body].join('\r\n');
  const connection = rawHttp(stopping.origin);
  connection.write(lines.repeat(4));
  await whenMetric(stopping, 'gateway_watchers', 4);
  connection.end();
  await whenMetric(stopping, 'gateway_watchers', 0);
  const startedAt = performance.now();
  await stopping.stop();
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
