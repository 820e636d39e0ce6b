import { once } from 'node:events';
import { connect } from 'node:net';
import { type Handler, HttpServer } from '../../../src/http/HttpServer.js';
import { rawHttp } from '../../support/rawHttp.js';
import { recordedLog } from '../../support/recordedLog.js';

let http: HttpServer | undefined;
afterEach(() => http?.stop());

/** Serves `/` by `handler`. */
async function serve(handler: Handler) {
  const { lines, log } = recordedLog();
  http = new HttpServer({
    host: '127.0.0.1',
    port: 0,
    routes: { '/': handler },
    log,
  });
  await http.listen('PORT');
  const expectOneBug = () =>
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'error', msg: 'a bug of the gateway', err: { type: 'TypeError' } },
    ]);
  return { origin: `http://127.0.0.1:${http.port}`, lines, expectOneBug };
}

const failing = async (): Promise<never> => {
  throw new TypeError('planted');
};

it.each<[string, Handler]>([
  ['a handler that rejects', failing],
  [
    'a handler that throws',
    () => {
      throw new TypeError('planted');
    },
  ],
])('%s is answered with 500 and logged once', async (_, handler) => {
  const { origin, lines, expectOneBug } = await serve(handler);
  const response = await fetch(origin);
  expect([response.status, await response.text()]).toEqual([500, 'Internal server error\n']);
  expectOneBug();
  expect(lines.join('')).not.toContain('planted');
});

it('an answer that has begun ends with its connection, so that nobody takes it for a whole one', async () => {
  const { origin, expectOneBug } = await serve(async (_, response) => {
    response.writeHead(200, ['content-type', 'text/plain']).write('the beginning');
    await failing();
  });
  const connection = rawHttp(origin);
  connection.write('GET / HTTP/1.1', 'Host: x', '', '');
  expect(await connection.answer()).toBeUndefined();
  expectOneBug();
});

it('an answer that was complete is sent to its end, also while the process ends', async () => {
  const { origin, expectOneBug } = await serve(async (_, response) => {
    response.writeHead(200).end('x'.repeat(20_000_000));
    await failing();
  });
  const response = await fetch(origin);
  const silent = connect(Number(new URL(origin).port));
  await once(silent, 'connect');
  const stopped = http?.stop(4000);
  await once(silent.resume(), 'close'); // when idle connections end
  expect(await response.text()).toHaveLength(20_000_000);
  await stopped;
  expectOneBug();
});

it('a connection that comes while the event loop is busy is accepted before the listening socket closes', async () => {
  const { origin } = await serve((_, response) => response.end('x'));
  const stopped = http?.stop(4000);
  const errors: string[] = [];
  for (const busyUntil = performance.now() + 1500; performance.now() < busyUntil; ) {
    await new Promise(setImmediate); // a turn that accepts the last connection, and one without any
    await new Promise(setImmediate);
    for (const turnAt = performance.now(); performance.now() < turnAt + 4; );
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    socket.once('error', ({ message }) => errors.push(message)).end('GET / HTTP/1.0\r\n\r\n');
  }
  await stopped;
  expect(errors).toEqual([]);
});
