import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { rawSocket } from '../../support/rawSocket.js';

describe('A flood of refusals', () => {
  let provider: TrustedProvider;
  let gateway: TestGateway;

  beforeAll(async () => {
    provider = await startTrustedProvider();
    gateway = await startTestGateway(provider.env);
  });

  afterAll(async () => {
    await gateway.stop();
    await provider.stop();
  });

  /** Sends that many requests without a token, ten on a connection, all at once. */
  async function flood(connections: number) {
    const { hostname, port } = new URL(gateway.origin);
    const body = '{"query":"{ __typename }"}';
    const head = `POST /graphql HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
    const sockets = Array.from({ length: connections }, () => connect(Number(port), hostname));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    const ended = sockets.map(async (socket) => {
      let text = '';
      socket.on('error', () => {});
      socket.write(`${head}\r\n\r\n${body}`.repeat(10));
      await new Promise<void>((resolve) => {
        socket.once('close', () => resolve());
        socket.on('data', (piece) => {
          text += piece;
          if (text.split('UNAUTHENTICATED').length > 10) resolve();
        });
      });
      socket.destroy();
      return text.split('HTTP/1.1 401').length - 1;
    });
    return Promise.all(ended);
  }

  it('is answered a few hundred a second, while others are answered', async () => {
    const authorization = await provider.watcherOf([]);
    const ask = () => gateway.query('{ __typename }', {}, { authorization });
    await ask();
    const startedAt = performance.now();
    const flooding = flood(59);
    expect((await ask()).status).toBe(200);
    expect(await flooding).toEqual(Array(59).fill(10));
    expect(performance.now() - startedAt).toBeGreaterThan(900);
  });

  it('has connections ended when more of one address wait than a second answers, while others are answered', async () => {
    const authorization = await provider.watcherOf([]);
    const startedAt = performance.now();
    const flooding = flood(300);
    expect((await gateway.query('{ __typename }', {}, { authorization })).status).toBe(200);
    const answered = await flooding;
    const total = answered.reduce((sum, count) => sum + count, 0);
    expect(total).toBeGreaterThan(200);
    // 100 at once, then 500 a second; the other connections are ended.
    expect(total).toBeLessThanOrEqual(100 + 0.5 * (performance.now() - startedAt + 1000));
  });

  it('on a socket closes it, once more wait than a second answers', async () => {
    const socket = rawSocket(gateway.origin);
    await socket.init({ authorization: await provider.watcherOf([]) });
    const startedAt = performance.now();
    for (let n = 0; n < 5000; n += 1) socket.send({ id: `${n}`, type: 'subscribe', payload: { query: '{ nothing }' } });
    expect(await socket.closed).toEqual({ code: 1013, reason: 'Too many messages' });
    const refused = socket.received.filter(({ type }) => type === 'error').length;
    expect(refused).toBeGreaterThan(500);
    // 100 at once, then 500 a second, of which a second's worth may come early.
    expect(refused).toBeLessThanOrEqual(100 + 0.5 * (performance.now() - startedAt + 1000));
  });
});
