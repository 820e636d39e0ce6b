import { once } from 'node:events';
import { Agent, createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { GatewayError } from '../../src/errors/errors.js';
import { ResilientFetch, type ResilientFetchOptions, type ServiceRequest } from '../../src/upstream/ResilientFetch.js';
import { real, replacePlatform, restorePlatform } from '../support/platform.js';

const limits = { timeoutMs: 2000, deadlineMs: 8000, breakerResetMs: 60_000, maxResponseBytes: 10_000 };

let http: ResilientFetch;
let service: Service;

beforeEach(async () => {
  http = new ResilientFetch(limits);
  service = await startService();
});
afterEach(async () => {
  restorePlatform();
  http.stop();
  await service.stop();
});

const get = (): ServiceRequest => ({ endpoint: 'refreshJob', method: 'GET', url: service.url, headers: {} });
const post = (url = service.url): ServiceRequest => ({
  endpoint: 'createClientLink',
  method: 'POST',
  url,
  headers: { 'Content-Type': 'application/json' },
  body: '{}',
});
const using = (options: Partial<ResilientFetchOptions>) => {
  http.stop();
  http = new ResilientFetch({ ...limits, ...options });
};

const chanceIs = (random: number) => replacePlatform(() => ({ random: () => random }));
/** A clock that can be moved. */
const usingClock = () => {
  let ms = 0;
  replacePlatform(() => ({ monotonicNow: () => real.monotonicNow() + ms, random: () => 0 }));
  return { advance: (by: number) => (ms += by) };
};
/** Tries again until the attempt succeeds. */
const until = async <T>(attempt: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      return await attempt();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
};

describe('A repeated GET', () => {
  it('waits a random time before each repetition, up to twice as long each time', async () => {
    chanceIs(0.999);
    service.answer = (_, response) => response.writeHead(500).end();
    await expect(http.call(get())).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    const [first = 0, second = 0, third = 0] = service.arrivals;
    expect(service.arrivals).toHaveLength(3);
    expect(second - first).toBeGreaterThan(190);
    expect(third - second).toBeGreaterThan(390);
  });

  it('waits as long as Retry-After asks', async () => {
    chanceIs(0);
    service.answer = (_, response) =>
      service.arrivals.length === 1
        ? response.writeHead(503, { 'retry-after': '1' }).end()
        : response.writeHead(200).end('{"fine":true}');
    expect(await http.call(get())).toMatchObject({ status: 200, json: { fine: true } });
    const [first = 0, second = 0] = service.arrivals;
    expect(second - first).toBeGreaterThan(990);
  });

  it('is not made when the service asks for a pause of more than half the deadline', async () => {
    service.answer = (_, response) => response.writeHead(503, { 'retry-after': '5' }).end();
    await expect(http.call(get())).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', retryAfterSeconds: 5 });
    expect(service.arrivals).toHaveLength(1);
  });

  it('is not made when the pause would end after the deadline', async () => {
    using({ deadlineMs: 2200 });
    const beforeTry = jest.fn(async () => {});
    service.answer = (_, response) =>
      setTimeout(
        () => response.writeHead(503, { 'retry-after': '1' }).end(),
        service.arrivals.length === 1 ? 300 : 500,
      );
    const startedAt = performance.now();
    await expect(http.call({ ...get(), beforeTry })).rejects.toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      retryAfterSeconds: 1,
    });
    expect(performance.now() - startedAt).toBeLessThan(2200);
    expect(service.arrivals).toHaveLength(2);
    expect(beforeTry).toHaveBeenCalledTimes(2);
  });

  it('is not sent when the deadline passes first', async () => {
    const tried = jest.fn();
    using({ deadlineMs: 100, onTry: tried });
    const beforeTry = () => new Promise<void>((resolve) => setTimeout(resolve, 200));
    await expect(http.call({ ...get(), beforeTry })).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
    expect(tried).not.toHaveBeenCalled();
    expect(service.arrivals).toHaveLength(0);
  });

  it('is not begun for a caller that is gone', async () => {
    const beforeTry = jest.fn(async () => {});
    const call = http.call({ ...get(), beforeTry, signal: AbortSignal.abort() });
    await expect(call).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
    expect(beforeTry).not.toHaveBeenCalled();
  });

  it('ends when its caller aborts, also between two tries', async () => {
    chanceIs(0.999);
    const beforeTry = jest.fn(async () => {});
    const caller = new AbortController();
    service.answer = (_, response) => response.writeHead(503, { 'retry-after': '3' }).end();
    const call = http.call({ ...get(), beforeTry, signal: caller.signal });
    await service.whenCalled();
    setTimeout(() => caller.abort(), 200);
    const startedAt = performance.now();
    await expect(call).rejects.toMatchObject({ code: expect.stringMatching(/^UPSTREAM_/) });
    expect(performance.now() - startedAt).toBeLessThan(2500);
    expect(service.arrivals).toHaveLength(1);
    expect(beforeTry).toHaveBeenCalledTimes(1);
  });
});

describe('The time limit of a try', () => {
  it('does not affect later calls, and a thousand calls leak no listener', async () => {
    using({ timeoutMs: 400 });
    service.answer = (_, response) => setTimeout(() => response.writeHead(200).end('{"fine":true}'), 250);
    for (const call of [get(), get(), { ...get(), signal: new AbortController().signal }]) {
      expect(await http.call(call)).toMatchObject({ json: { fine: true } });
    }
    const warned = jest.fn();
    process.on('warning', warned);
    service.answer = (_, response) => response.writeHead(200).end('{"fine":true}');
    for (let n = 0; n < 1000; n += 1) await http.call(n % 2 ? get() : post());
    process.off('warning', warned);
    expect(warned).not.toHaveBeenCalled(); // of too many listeners on one signal
  });
});

describe('The circuit breaker', () => {
  const failing: RequestListener = (_, response) => response.writeHead(500).end();

  it('stops calling an endpoint that kept failing, says when to come back, and leaves the others alone', async () => {
    service.answer = failing;
    for (let n = 0; n < 5; n += 1) await expect(http.call(post())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await expect(http.call(post())).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', retryAfterSeconds: 60 });
    expect(service.arrivals).toHaveLength(5);
    service.answer = (_, response) => response.writeHead(200).end('{}');
    expect((await http.call(get())).status).toBe(200);
  });

  it('tries again by itself after the time, and closes when that goes well', async () => {
    const clock = usingClock();
    service.answer = failing;
    for (let n = 0; n < 5; n += 1) await expect(http.call(post())).rejects.toThrow();
    service.answer = (_, response) => response.writeHead(201).end('{}');
    await expect(http.call(post())).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    expect(http.breakerState('createClientLink')).toBe('open');
    clock.advance(limits.breakerResetMs);
    expect(http.breakerState('createClientLink')).toBe('half-open');
    const answers = await Promise.all([http.call(post()), http.call(post())]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    expect(http.breakerState('createClientLink')).toBe('closed');
  });

  it('is not kept open by a clock that was set back', async () => {
    using({ breakerResetMs: 50 });
    service.answer = failing;
    for (let n = 0; n < 5; n += 1) await expect(http.call(post())).rejects.toThrow();
    const setBack = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 86_400_000);
    service.answer = (_, response) => response.writeHead(201).end('{}');
    const answered = await until(async () => (await http.call(post())).status);
    setBack.mockRestore();
    expect(answered).toBe(201);
  });

  it.each([
    [
      'refused by the gate',
      () => ({ beforeTry: async () => Promise.reject(new GatewayError('UPSTREAM_RATE_LIMITED', '')) }),
    ],
    [
      'given up before it left',
      () => {
        const caller = new AbortController();
        return { signal: caller.signal, beforeTry: async () => caller.abort() };
      },
    ],
  ])('learns nothing from a trial that was %s: the next call is the trial', async (_, notMade) => {
    const clock = usingClock();
    service.answer = failing;
    for (let n = 0; n < 5; n += 1) await expect(http.call(post())).rejects.toThrow();
    clock.advance(limits.breakerResetMs);
    await expect(http.call({ ...post(), ...notMade() })).rejects.toThrow();
    expect(http.breakerState('createClientLink')).toBe('half-open');
    const together = [http.call({ ...post(), ...notMade() }), http.call(post()), http.call(post())];
    expect((await Promise.allSettled(together)).map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    expect(service.arrivals).toHaveLength(6);
    clock.advance(limits.breakerResetMs);
    service.answer = (_, response) => response.writeHead(201).end('{}');
    expect((await http.call(post())).status).toBe(201);
  });

  it('counts an answer that breaks the contract as a sign of life', async () => {
    service.answer = (_, response) => response.writeHead(200).end('no JSON');
    for (let n = 0; n < 7; n += 1) {
      await expect(http.call(post())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    }
    expect(service.arrivals).toHaveLength(7);
  });

  /** The URL of the service says what the answer will be. */
  const about = (subject: string, holder?: string, status = 200): ServiceRequest => ({
    ...get(),
    url: `${service.url}${status}`,
    subject,
    holder,
  });
  const asked: RequestListener = (request, response) => response.writeHead(Number(request.url?.slice(1))).end('{}');
  const failFor = async (holder: string | undefined, subjects: readonly string[]) => {
    for (const subject of subjects) await expect(http.call(about(subject, holder, 500))).rejects.toThrow();
  };
  const five = ['a', 'b', 'c', 'd', 'e'];

  it('stays closed when one id alone fails, however often', async () => {
    usingClock();
    service.answer = asked;
    await failFor(undefined, Array(8).fill('bad'));
    expect((await http.call(about('good'))).status).toBe(200);
    expect(http.breakerState('refreshJob')).toBe('closed');
  });

  it('opens for five ids that fail in a row, without an answer between', async () => {
    usingClock();
    service.answer = asked;
    await failFor(undefined, ['a', 'b', 'c', 'd']);
    expect((await http.call(about('good'))).status).toBe(200);
    await failFor(undefined, five);
    await expect(http.call(about('good'))).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
  });

  it('forgets failures after ten seconds', async () => {
    const clock = usingClock();
    service.answer = asked;
    for (const subject of [...five, ...five]) {
      await failFor(undefined, [subject]);
      clock.advance(2600);
    }
    expect(http.breakerState('refreshJob')).toBe('closed');
  });

  it('opens for the caller whose calls fail, and for no other', async () => {
    usingClock();
    service.answer = asked;
    await failFor('hostile', five);
    const before = service.arrivals.length;
    await expect(http.call(about('good', 'hostile'))).rejects.toMatchObject({ retryAfterSeconds: 60 });
    expect(service.arrivals).toHaveLength(before);
    for (const holder of ['honest', undefined]) expect((await http.call(about('good', holder))).status).toBe(200);
    expect(http.breakerState('refreshJob')).toBe('open');
  });

  it('opens for everybody when three callers fail in a row, and closes when a trial is answered', async () => {
    const clock = usingClock();
    service.answer = asked;
    for (const holder of ['one', 'two', 'three']) await failFor(holder, [`${holder}'s`]);
    await expect(http.call(about('good', 'another'))).rejects.toMatchObject({ retryAfterSeconds: 60 });
    clock.advance(limits.breakerResetMs);
    await failFor('one', ['a']);
    await expect(http.call(about('good', 'another'))).rejects.toMatchObject({ retryAfterSeconds: 60 });
    clock.advance(limits.breakerResetMs);
    expect((await http.call(about('good', 'another'))).status).toBe(200);
    expect((await http.call(about('good', 'one'))).status).toBe(200);
  });

  it('ends the tries of the calls under way when it opens for everybody', async () => {
    usingClock();
    service.answer = (_, response) => response.writeHead(503, { 'retry-after': '2' }).end();
    const waiting = failFor('waiting', ["waiting's"]);
    while (service.arrivals.length === 0) await new Promise(setImmediate);
    service.answer = failing;
    for (const holder of ['one', 'two', 'three']) await failFor(holder, [`${holder}'s`]);
    await waiting;
    expect(service.arrivals).toHaveLength(1 + 3 * 3);
  });
});

describe('A POST', () => {
  it('is never sent on a connection that the service closed while it was idle', async () => {
    service.answer = (_, response) => {
      response.once('finish', () => response.socket?.resetAndDestroy());
      response.writeHead(201).end('{}');
    };
    for (let n = 0; n < 5; n += 1) expect((await http.call(post())).status).toBe(201);
    expect(service.arrivals).toHaveLength(5);
  });

  it('has no unknown outcome when nothing listens', async () => {
    const { url } = service;
    await service.stop();
    const onTry = jest.fn();
    using({ onTry });
    await expect(http.call(post(url))).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', retryable: true });
    expect(onTry).toHaveBeenCalledTimes(1);
  });

  it('has no unknown outcome when the name does not exist', async () => {
    await expect(http.call(post('http://no-such-host.invalid/'))).rejects.toMatchObject({
      code: expect.stringMatching(/^UPSTREAM_(UNAVAILABLE|TIMEOUT)$/),
      retryable: true,
    });
  });

  it('has no unknown outcome when TLS fails, whether refused or never finished', async () => {
    const plain = await startTcp((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await expect(http.call(post(`https://127.0.0.1:${plain.port}/`))).rejects.toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
    });
    await plain.stop();
    const silent = await startTcp(() => {});
    using({ timeoutMs: 100 });
    await expect(http.call(post(`https://127.0.0.1:${silent.port}/`))).rejects.toMatchObject({
      code: 'UPSTREAM_TIMEOUT',
      retryable: true,
    });
    await silent.stop();
  });

  it.each([500, 501, 502, 504, 511, 520, 522, 524, 599])('has an unknown outcome after a %i', async (status) => {
    service.answer = (_, response) => response.writeHead(status).end();
    await expect(http.call(post())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: false });
  });

  it('has no unknown outcome after a 503, which says that nothing was done', async () => {
    service.answer = (_, response) => response.writeHead(503).end();
    await expect(http.call(post())).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', retryable: true });
  });

  it.each<[string, RequestListener]>([
    ['is not JSON', (_, response) => response.writeHead(201).end('made')],
    ['is too large', (_, response) => response.writeHead(201).end(`"${'a'.repeat(limits.maxResponseBytes)}"`)],
    ['is not HTTP', (_, response) => response.socket?.end('SSH-2.0-x\r\n')],
    ['cannot be unpacked', (_, response) => response.writeHead(201, { 'content-encoding': 'gzip' }).end('no gzip')],
  ])('has an unknown outcome when its answer %s', async (_, answer) => {
    service.answer = answer;
    await expect(http.call(post())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: false });
    expect(service.arrivals).toHaveLength(1);
  });

  it('has an unknown outcome once it was sent and no answer came', async () => {
    using({ timeoutMs: 100 });
    service.answer = () => {};
    await expect(http.call(post())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: false });
    expect(service.arrivals).toHaveLength(1);
  });
});

describe('An answer', () => {
  it.each<[string, RequestListener]>([
    ['headers too large', (_, response) => response.writeHead(200, { 'x-long': 'a'.repeat(40_000) }).end('{}')],
    ['too many headers', (_, response) => response.writeHead(200, manyHeaders()).end('{}')],
    ['no HTTP', (_, response) => response.socket?.end('SSH-2.0-x\r\n')],
    [
      'two lengths',
      (_, response) => response.socket?.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x'),
    ],
    ['broken Brotli', (_, response) => response.writeHead(200, { 'content-encoding': 'br' }).end('no brotli at all')],
    ['broken deflate', (_, response) => response.writeHead(200, { 'content-encoding': 'deflate' }).end('no deflate')],
    [
      'an unknown encoding',
      (_, response) => response.writeHead(200, { 'content-encoding': 'x-strange' }).end('no JSON'),
    ],
  ])('with %s breaks the contract and is not asked for again', async (_, answer) => {
    service.answer = answer;
    await expect(http.call(get())).rejects.toMatchObject({ code: 'UPSTREAM_INVALID_RESPONSE' });
    expect(service.arrivals).toHaveLength(1);
  });

  it('that stops being HTTP in the middle is a broken connection, and asked for again', async () => {
    service.answer = (_, response) => response.socket?.end(`${chunkedHead}zz\r\n{}\r\n`);
    await expect(http.call(get())).rejects.toMatchObject({ code: 'UPSTREAM_UNAVAILABLE' });
    expect(service.arrivals).toHaveLength(3);
  });

  it('is taken when it is exactly as large as allowed, and not with one byte more', async () => {
    const json = `"${'a'.repeat(limits.maxResponseBytes - 2)}"`;
    service.answer = (_, response) => response.end(json);
    expect((await http.call(get())).json).toHaveLength(limits.maxResponseBytes - 2);
    service.answer = (_, response) => response.end(`${json} `);
    await expect(http.call(get())).rejects.toMatchObject({ code: 'UPSTREAM_INVALID_RESPONSE' });
  });

  it('that is an error and never ends is not waited for, and its connection cut', async () => {
    service.answer = (_, response) => response.writeHead(404, { 'content-length': '10' }).write('{');
    expect((await http.call(get())).status).toBe(404);
    await service.whenNoConnections();
    service.answer = (_, response) => response.writeHead(404).write('{');
    expect((await http.call(get())).status).toBe(404);
    await service.whenNoConnections();
  });
});

describe('What is told of a try', () => {
  const tries: unknown[][] = [];
  beforeEach(() => {
    tries.length = 0;
    chanceIs(0);
    using({ onTry: (...told) => tries.push(told) });
  });
  const told = (outcome: string, details: object) => [
    expect.any(String),
    outcome,
    expect.any(Number),
    expect.objectContaining(details),
  ];

  it.each([
    [200, 'ok'],
    [299, 'ok'],
    [300, 'ok'],
    [399, 'ok'],
    [400, 'client-error'],
    [404, 'client-error'],
    [407, 'client-error'],
    [499, 'client-error'],
  ])('an answer in %i is %s', async (status, outcome) => {
    service.answer = (_, response) => response.writeHead(status).end('{"fine":true}');
    const answer = await http.call(get());
    expect(answer).toEqual({ status, retryAfterSeconds: undefined, json: status < 300 ? { fine: true } : undefined });
    expect(tries).toEqual([told(outcome, { status, reason: undefined, repetition: 0 })]);
  });

  it('counts repetitions, and names the status of a failure', async () => {
    service.answer = (_, response) => response.writeHead(502).end();
    await expect(http.call(get())).rejects.toMatchObject({ reason: 'HTTP 502' });
    expect(tries).toEqual(
      [0, 1, 2].map((repetition) => told('server-error', { status: 502, reason: 'HTTP 502', repetition })),
    );
  });

  it.each([
    ['no answer in time', 'timeout', { timeoutMs: 50, deadlineMs: 60 }, () => {}],
    ['larger than MAX_RESPONSE_BYTES', 'invalid', { maxResponseBytes: 1 }, (_, response) => response.end('{}')],
    ['the body is not JSON', 'invalid', {}, (_, response) => response.end('{')],
    ['ECONNRESET', 'network', { deadlineMs: 60 }, (_, response) => response.socket?.resetAndDestroy()],
  ] satisfies [string, string, Partial<ResilientFetchOptions>, RequestListener][])(
    'says "%s"',
    async (reason, outcome, options, answer) => {
      using({ ...options, onTry: (...told) => tries.push(told) });
      service.answer = answer;
      await expect(http.call(get())).rejects.toMatchObject({ reason });
      expect(tries[0]).toEqual(told(outcome, { status: undefined, reason }));
    },
  );

  it('says that no time was left, and why the caller gave up', async () => {
    const cause = new Error('gone');
    const call = http.call({ ...get(), signal: AbortSignal.abort(cause) });
    await expect(call).rejects.toMatchObject({ reason: 'no time left for a try', cause });
  });

  it.each([
    ['EPIPE', 'UPSTREAM_UNAVAILABLE', 'EPIPE'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'UPSTREAM_UNAVAILABLE', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['Z_DATA_ERROR', 'UPSTREAM_INVALID_RESPONSE', 'Z_DATA_ERROR'],
    ['NO_Z_DATA_ERROR', 'UPSTREAM_UNAVAILABLE', 'NO_Z_DATA_ERROR'],
    ['to 10.0.0.1 EPIPE', 'UPSTREAM_UNAVAILABLE', 'the connection was lost'],
    ['EPIPE to 10.0.0.1', 'UPSTREAM_UNAVAILABLE', 'the connection was lost'],
    [undefined, 'UPSTREAM_UNAVAILABLE', 'the connection was lost'],
  ])('of an error with the code %j is a code of a known form alone', async (errorCode, code, reason) => {
    chanceIs(0);
    using({
      fetch: async () => Promise.reject(Object.assign(new Error('secret'), { code: errorCode })),
    });
    await expect(http.call(get())).rejects.toMatchObject({ code, reason });
  });

  it('a 407 is of the proxy where there is one: nothing was passed on, also of a POST', async () => {
    service.answer = (_, response) => response.writeHead(407).end();
    using({ newAgent: (options) => new Agent(options), onTry: (...told) => tries.push(told) });
    const failure = { code: 'UPSTREAM_UNAVAILABLE', reason: 'PROXY_HTTP_407' };
    await expect(http.call(post())).rejects.toMatchObject(failure);
    expect(tries).toEqual([told('network', { status: 407, reason: 'PROXY_HTTP_407' })]);
    service.answer = (_, response) => response.writeHead(404).end();
    expect((await http.call(post())).status).toBe(404);
  });
});

describe('Connections', () => {
  it('are closed when calls are over', async () => {
    for (const request of [get(), post()]) await http.call(request);
    http.stop();
    await service.whenNoConnections();
    expect(service.connections).toBeGreaterThan(0);
  });
});

describe('A compressed answer', () => {
  const packings: [string, Buffer][] = [
    ['br', brotliCompressSync('{"fine":true}')],
    ['deflate', deflateSync('{"fine":true}')],
    ['gzip', gzipSync('{"fine":true}')],
  ];
  /** Sends more after the compressed data until the connection is closed. */
  const goOn = (response: ServerResponse) => {
    const timer = setInterval(() => response.write('more'), 5);
    response.once('close', () => clearInterval(timer));
  };

  // What follows gzip data would be read as another member of it.
  const endingByThemselves = packings.filter(([encoding]) => encoding !== 'gzip');

  it.each(endingByThemselves)(
    '(%s) with more bytes behind its data is used, and its connection cut',
    async (encoding, packed) => {
      const warned = jest.fn();
      process.on('warning', warned);
      service.answer = (_, response) => {
        response.writeHead(200, { 'content-encoding': encoding }).write(Buffer.concat([packed, Buffer.from('more')]));
        goOn(response);
      };
      for (let n = 0; n < 24; n += 1) {
        expect(await http.call(n % 2 ? get() : post())).toMatchObject({ json: { fine: true } });
      }
      await service.whenNoConnections();
      process.off('warning', warned);
      expect(warned).not.toHaveBeenCalled(); // of too many listeners on one signal
    },
  );

  it.each(packings)(
    '(%s) with more bytes behind an error, or behind no JSON, has its connection cut',
    async (encoding, packed) => {
      const start = Buffer.concat([packed, Buffer.from('more')]);
      service.answer = (_, response) => {
        response.writeHead(404, { 'content-encoding': encoding, 'content-length': '60000' }).write(start);
        goOn(response);
      };
      expect((await http.call(get())).status).toBe(404);
      await service.whenNoConnections();
      service.answer = (_, response) => {
        const data =
          encoding === 'br' ? brotliCompressSync('{') : encoding === 'gzip' ? gzipSync('{') : deflateSync('{');
        response.writeHead(200, { 'content-encoding': encoding }).write(Buffer.concat([data, Buffer.from('more')]));
        goOn(response);
      };
      await expect(http.call(get())).rejects.toMatchObject({ code: 'UPSTREAM_INVALID_RESPONSE' });
      await service.whenNoConnections();
    },
  );

  it.each(packings)('(%s) that ends with its data leaves the connection in use', async (encoding, packed) => {
    service.answer = (_, response) => response.writeHead(200, { 'content-encoding': encoding }).end(packed);
    for (let n = 0; n < 4; n += 1) {
      expect(await http.call(get())).toMatchObject({ json: { fine: true } });
      await service.whenIdle();
    }
    expect(service.connections).toBeLessThan(4);
  });
});

const chunkedHead = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

function manyHeaders(): Record<string, string> {
  return Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`x-${index}`, 'some value']));
}

interface Service {
  readonly url: string;
  /** When each request came, in milliseconds. */
  readonly arrivals: readonly number[];
  /** Accepted so far. */
  readonly connections: number;
  answer: RequestListener;
  whenCalled(): Promise<void>;
  whenIdle(): Promise<void>;
  whenNoConnections(): Promise<void>;
  stop(): Promise<void>;
}

/** A service that answers as the test says, whatever HTTP it speaks. */
async function startService(): Promise<Service> {
  const arrivals: number[] = [];
  let connections = 0;
  let open = 0;
  const server: Server = createServer((request, response) => {
    arrivals.push(performance.now());
    request.resume();
    request.once('end', () => running.answer(request, response));
  });
  server.on('connection', (socket) => {
    connections += 1;
    open += 1;
    socket.once('close', () => {
      open -= 1;
      server.emit('one-closed');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const running: Service = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    arrivals,
    get connections() {
      return connections;
    },
    answer: (_, response) => response.end('{}'),
    whenCalled: async () => {
      if (arrivals.length === 0) await once(server, 'request');
    },
    whenIdle: () => new Promise((resolve) => setImmediate(() => setImmediate(resolve))),
    whenNoConnections: async () => {
      while (open > 0) await once(server, 'one-closed');
    },
    stop: async () => {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
  return running;
}

async function startTcp(onConnection: (socket: Socket) => void) {
  const server: TcpServer = createTcpServer((socket) => {
    socket.on('error', () => {});
    sockets.add(socket);
    onConnection(socket);
  });
  const sockets = new Set<Socket>();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
