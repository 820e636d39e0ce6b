import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { maxTries } from '../../../src/upstream/ResilientFetch.js';
import { type Answer, codesOf, startTestGateway } from '../../support/gateway.js';
import { serve } from '../../support/serve.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const maxBytes = 1024 * 1024;

const service = await startService();
const env = { UPSTREAM_BASE_URL: service.url, BREAKER_RESET_MS: '1', TOKEN_BUDGET_PER_HOUR: '0' };
const gateway = await startTestGateway(env);
beforeEach(() => {
  service.arrivals.length = 0;
  service.answer = (request, response) => response.end(recordOf(request.url));
});

let taxpayers = 0;
/** Reads the record of a taxpayer nobody has asked for yet; `answered` or the code of the error. */
const get = async ({ query } = gateway, id = `t-${taxpayers++}`) =>
  codeOf(await query('query ($id: ID!) { taxpayerToken(taxpayerId: $id) { status } }', { id }));
const post = async ({ query } = gateway) =>
  codeOf(await query('mutation { createClientLink(input: {}) { replayed } }'));
const codeOf = (answer: Answer) => codesOf(answer)[0] ?? 'answered';

/** The right answer to a request with this path; spaces behind it make it so long. */
function recordOf(path = '', length = 0) {
  const record = { access_token: 't', taxpayer_id: path.split('/')[3], provider_id: 'irs', status: 'CREATED' };
  return JSON.stringify(path === '/client-links' ? { id: 'link', url: 'https://x.example' } : record).padEnd(length);
}

describe('A request that fails', () => {
  it.each([
    { 'retry-after': '1' },
    // By the clock of the service, whatever the gateway's says.
    { date: 'Mon, 06 May 2024 07:08:09 GMT', 'retry-after': 'Mon, 06 May 2024 07:08:10 GMT' },
  ])('is repeated no sooner than the service asks, if it is a GET: %j', async (headers) => {
    const { answer } = service;
    service.answer = (request, response) => {
      if (service.arrivals.length > 1) answer(request, response);
      else response.writeHead(503, headers).end();
    };
    expect(await get()).toBe('answered');
    const [first = 0, second = 0] = service.arrivals;
    expect(second - first).toBeGreaterThan(990);
  });

  it.each([
    ['GET', get, 'UPSTREAM_TIMEOUT'],
    ['POST', post, 'OUTCOME_UNKNOWN'],
  ] as const)('ends at UPSTREAM_DEADLINE_MS, if it is a %s, though one try may take longer', async (_, ask, code) => {
    service.answer = () => {};
    const limits = { UPSTREAM_TIMEOUT_MS: '10000', UPSTREAM_DEADLINE_MS: '200' };
    const hasty = await startTestGateway({ ...env, ...limits });
    const beganAt = performance.now();
    expect(await ask(hasty)).toBe(code);
    expect(performance.now() - beganAt).toBeLessThan(5000);
  });

  it.each([
    ['had ended unnoticed', (socket: Socket) => void socket.destroy()],
    ['brings no answer any more', () => {}],
    ['leads to a broken server', (socket: Socket) => void socket.write('HTTP/1.1 500 E\r\nContent-Length: 0\r\n\r\n')],
  ])('on a kept connection that %s is repeated on a new one, however many were kept', async (_, treat) => {
    const { answer } = service;
    const hasty = await startTestGateway({ ...env, UPSTREAM_TIMEOUT_MS: '300' });
    const slow: RequestListener = (request, response) => setTimeout(() => answer(request, response), 50);
    service.answer = slow;
    await Promise.all(times(10, () => get(hasty)));
    const before = service.arrivals.length;
    const old = new Set(service.sockets);
    service.answer = (request, response) => (old.has(request.socket) ? treat(request.socket) : slow(request, response));
    expect(await get(hasty)).toBe('answered');
    expect(service.arrivals.length - before).toBe(2);
  });

  it('is repeated on another connection than one that brought a 5xx', async () => {
    const { answer } = service;
    const broken = new Set<Socket>();
    service.answer = (request, response) => {
      if (broken.size === 0) broken.add(request.socket);
      if (broken.has(request.socket)) response.writeHead(500).end();
      else answer(request, response);
    };
    expect(await get(await startTestGateway(env))).toBe('answered');
    expect(service.arrivals).toHaveLength(2);
  });

  it('is known not to have arrived where TLS fails, the host is not found, or no route leads to it', async () => {
    const plain = createTcpServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const { host } = new URL(await serve(plain));
    for (const url of [`https://${host}`, 'http://no-such-host.invalid', 'http://255.255.255.255']) {
      const other = await startTestGateway({ UPSTREAM_BASE_URL: url });
      expect(await post(other)).toMatch(/^UPSTREAM_(UNAVAILABLE|TIMEOUT)$/);
    }
  });
});

describe('An answer', () => {
  const manyHeaders = Object.fromEntries(times(3000, (n) => [`x-${n}`, 'some value']));
  const encoded = (encoding: string): RequestListener => {
    return (_, response) => response.writeHead(200, { 'content-encoding': encoding }).end('nothing of the kind');
  };
  it.each<[string, RequestListener]>([
    ['headers too large', (_, response) => response.writeHead(200, { 'x-long': 'a'.repeat(40_000) }).end('{}')],
    ['too many headers', (_, response) => response.writeHead(200, manyHeaders).end('{}')],
    ['no HTTP', (_, response) => response.socket?.end('SSH-2.0-x\r\n')],
    [
      'two lengths',
      (_, response) => response.socket?.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x'),
    ],
    ['broken Brotli', encoded('br')],
    ['broken deflate', encoded('deflate')],
    ['an unknown encoding', encoded('x-strange')],
  ])('with %s breaks the contract and is not asked for again', async (_, answer) => {
    service.answer = answer;
    expect([await get(), await post()]).toEqual(['UPSTREAM_INVALID_RESPONSE', 'OUTCOME_UNKNOWN']);
    expect(service.arrivals).toHaveLength(2);
  });

  it('about an id that differs in case alone is about another taxpayer, unless it is a UUID', async () => {
    const inUpperCase: RequestListener = ({ url = '' }, response) =>
      response.end(recordOf(url.replace(/[^/]+(?=\/token)/, (id) => id.toUpperCase())));
    service.answer = inUpperCase;
    expect(await get()).toBe('UPSTREAM_INVALID_RESPONSE');
    expect(await get(gateway, 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')).toBe('answered');
  });

  it('that stops being HTTP in the middle is a broken connection, and asked for again', async () => {
    const start = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
    service.answer = (_, response) => response.socket?.end(`${start}zz\r\n{}\r\n`);
    expect(await get()).toBe('UPSTREAM_UNAVAILABLE');
    expect(service.arrivals).toHaveLength(maxTries);
  });

  it('is taken when it is exactly as large as allowed, and not with one byte more', async () => {
    service.answer = (request, response) => response.end(recordOf(request.url, maxBytes));
    expect(await get()).toBe('answered');
    service.answer = (request, response) => response.end(recordOf(request.url, maxBytes + 1));
    expect(await get()).toBe('UPSTREAM_INVALID_RESPONSE');
  });

  it.each([{ 'content-length': '10' }, {}])(
    'that is an error and never ends is not waited for: %j',
    async (headers) => {
      service.answer = (_, response) => response.writeHead(404, headers).write('{');
      expect(await get()).toBe('NOT_FOUND');
      await service.whenNoConnections();
    },
  );
});

it('A POST has a connection of its own, which is closed after the answer', async () => {
  service.answer = (request, response) => response.writeHead(201).end(recordOf(request.url));
  const before = service.sockets.size;
  for (let n = 0; n < 3; n += 1) expect(await post()).toBe('answered');
  await until(() => service.sockets.size <= before, 2000);
});

describe('A compressed answer', () => {
  const packings: [string, (text: string) => Buffer][] = [
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['gzip', gzipSync],
  ];
  /** Sends more after the compressed data until the connection is closed. */
  function goOn(response: ServerResponse, data: Buffer) {
    response.write(Buffer.concat([data, Buffer.from('more')]));
    const timer = setInterval(() => response.write('more'), 5);
    response.once('close', () => clearInterval(timer));
  }

  it.each(packings)('(%s) that ends with its data leaves the connection in use', async (encoding, pack) => {
    service.answer = (request, response) =>
      response.writeHead(200, { 'content-encoding': encoding }).end(pack(recordOf(request.url)));
    const before = service.connections();
    for (let n = 0; n < 4; n += 1) expect(await get()).toBe('answered');
    expect(service.connections() - before).toBeLessThan(4);
  });

  it.each(packings)('(%s) is taken whose last chunk has trailers and ends the connection', async (encoding, pack) => {
    service.answer = (request, response) => {
      response.writeHead(200, { 'content-encoding': encoding, connection: 'close', trailer: 'x-a' });
      response.addTrailers({ 'x-a': 'b' });
      response.write(pack(recordOf(request.url)));
      response.end();
    };
    expect([await get(), await post()]).toEqual(['answered', 'answered']);
  });

  it.each(packings)('(%s) with more bytes behind it has its connection cut', async (encoding, pack) => {
    const outcomes: string[] = [];
    for (const [status, text] of [
      [200, undefined],
      [404, '{}'],
      [200, '{'],
    ] as const) {
      service.answer = (request, response) => {
        response.writeHead(status, { 'content-encoding': encoding });
        goOn(response, pack(text ?? recordOf(request.url)));
      };
      outcomes.push(await get());
      await service.whenNoConnections();
    }
    // What follows gzip data would be another member of it.
    const first = encoding === 'gzip' ? 'UPSTREAM_INVALID_RESPONSE' : 'answered';
    expect(outcomes).toEqual([first, 'NOT_FOUND', 'UPSTREAM_INVALID_RESPONSE']);
  });
});

/** A service that answers as the test says, whatever HTTP it speaks. */
async function startService() {
  let connections = 0;
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    running.arrivals.push(performance.now());
    request.resume().once('end', () => running.answer(request, response));
  });
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      server.emit('one-closed');
    });
  });
  const running = {
    url: await serve(server),
    /** When each request came, in milliseconds. */
    arrivals: [] as number[],
    answer: ((_, response) => response.end()) as RequestListener,
    /** Accepted so far. */
    connections: () => connections,
    /** Open now. */
    sockets,
    whenNoConnections: async () => {
      while (sockets.size > 0) await once(server, 'one-closed');
    },
  };
  return running;
}
