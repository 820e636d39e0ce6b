import { once } from 'node:events';
import { endOfTurn } from '../../../src/process/pause.js';
import { startTestGateway, whenMetric } from '../../support/gateway.js';
import { clientFrame, rawHttp, rawUpgrade } from '../../support/rawHttp.js';
import { initSocket, rawSocket } from '../../support/rawSocket.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

const continuation = 0x0;
const text = 0x1;
const closeFrame = 0x8;
const ping = 0x9;
const handshake = ['GET /graphql HTTP/1.1', 'host: gateway', 'connection: upgrade', 'upgrade: websocket'];

const gateway = await startTestGateway({ MAX_CONNECTIONS: '20' }); // ten unauthenticated sockets, five of one address

describe('an unauthenticated socket', () => {
  /** Resolves when so many sockets are open. */
  const whenOpen = (count: number, timeoutMs?: number) =>
    whenMetric(gateway, 'gateway_open_streams{transport="ws"}', count, timeoutMs);
  beforeEach(() => whenOpen(0));

  const upgraded = (from?: string) => rawUpgrade(gateway.origin, from);

  it('is dropped after the promised time even if it does not answer the close', async () => {
    const known = await initSocket(gateway);
    const before = performance.now();
    expect((await upgraded()).status).toBe(101);
    await whenOpen(2);
    await whenOpen(1);
    expect(performance.now() - before).toBeGreaterThan(2900);
    known.send({ type: 'ping' });
    await known.message('pong');
    known.end();
  });

  it('takes no place of a caller, and only a few per address', async () => {
    const known = await initSocket(gateway);
    for (let n = 0; n < 5; n += 1) expect((await upgraded()).status).toBe(101);
    expect((await upgraded()).status).toBe(429);
    // Sockets of another address still connect, and so do event streams, which authenticate before they take a place.
    for (let n = 0; n < 5; n += 1) expect((await upgraded('127.0.0.2')).status).toBe(101);
    // All places are taken: the oldest is given up, but not for an address that is refused.
    expect((await upgraded('127.0.0.2')).status).toBe(429);
    await whenOpen(11, 1000);
    expect((await upgraded('127.0.0.3')).status).toBe(101);
    await whenOpen(11, 1000);
    const events = await fetch(`${gateway.origin}/graphql/stream?query={__typename}`, {
      headers: { accept: 'text/event-stream' },
    });
    expect(await events.text()).toContain('event: complete');
    known.send({ type: 'ping' });
    await known.message('pong');
    known.end();
    await whenOpen(0);
    for (let n = 0; n < 8; n += 1) await initSocket(gateway);
    await whenOpen(8);
  });

  it('may send connection_init and no large message', async () => {
    const socket = rawSocket(gateway.origin);
    await socket.opened;
    socket.send({ type: 'ping', payload: { filler: 'x'.repeat(20_000) } });
    expect((await socket.closed).code).toBe(1009);
    expect(socket.received).toEqual([]);
    const known = rawSocket(gateway.origin);
    await known.opened;
    for (let n = 0; n < 200; n += 1) {
      known.socket.ping('x'.repeat(100));
      await once(known.socket, 'pong');
    }
    await known.init({ authorization: `Bearer ${'x'.repeat(8000)}` });
    known.send({ type: 'ping', payload: { filler: 'x'.repeat(20_000) } });
    await known.message('pong');
  });

  const headOfLarge = clientFrame(text, Buffer.alloc(0), 200_000);
  const kilobyte = Buffer.alloc(1000, 'x');
  const firstFragment = Buffer.from([text, 0x80, 0, 0, 0, 0]); // empty, and not the last
  const fragment = clientFrame(continuation, kilobyte);
  fragment[0] = continuation; // without the bit of the last one
  it.each<[string, Buffer, Buffer, number]>([
    ['one frame', headOfLarge, kilobyte, 20],
    ['one frame in single bytes', headOfLarge, Buffer.from('x'), 80],
    ['many fragments', firstFragment, fragment, 20],
  ])('cannot leave a large message unfinished: %s', async (_, beginning, piece, pieces) => {
    const { socket } = await upgraded();
    socket.setNoDelay().write(beginning);
    for (let n = 0; n < pieces; n += 1) {
      socket.write(piece);
      await endOfTurn(); // a piece is read in each
    }
    await whenOpen(0, 2000);
  });

  it('has one message read at a time, however many come in a packet, so that others get their turn', async () => {
    const { socket } = await upgraded();
    const pongs: number[] = [];
    socket.on('data', ({ length }) => pongs.push(length / 2));
    socket.write(Buffer.concat(Array(100).fill(clientFrame(ping, Buffer.alloc(0)))));
    await until(() => pongs.reduce((sum, count) => sum + count, 0) === 100);
    expect(Math.max(...pongs)).toBeLessThan(10); // the test reads in the same turns of the same event loop
  });

  it('gives back its place when its handshake lacks a key', async () => {
    for (let n = 0; n < 6; n += 1) {
      const { write, answer, closed } = rawHttp(gateway.origin);
      write(...handshake, '', '');
      expect(await answer()).toMatchObject({ status: 400, body: expect.stringContaining('Sec-WebSocket-Key') });
      await closed;
    }
    expect((await upgraded()).status).toBe(101);
  });

  it('takes no place when it has left before its turn', async () => {
    const leaving = times(40, () => rawHttp(gateway.origin));
    for (const { write, answer } of leaving) {
      write('GET /health/live HTTP/1.1', 'host: gateway', '', '');
      await answer();
    }
    const key = 'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==';
    for (const { write } of leaving) write(...handshake, 'sec-websocket-version: 13', key, '', '');
    await leaving[0]?.answer();
    for (const { socket } of leaving) socket.resetAndDestroy();
    await until(async () => (await upgraded()).status === 101);
    for (let n = 1; n < 5; n += 1) expect((await upgraded()).status).toBe(101);
  });

  it('gives back its place after its close frame', async () => {
    const { socket } = await upgraded();
    socket.write(clientFrame(closeFrame, Buffer.from([0x03, 0xe8])));
    await whenOpen(0, 2500);
  });
});
