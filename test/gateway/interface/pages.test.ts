import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';

describe('/graphiql', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
  });

  afterAll(() => gateway.stop());

  it('is held once, however many have asked for it and do not read it', async () => {
    const page = await (await fetch(`${gateway.origin}/graphiql`)).text();
    expect(page.length).toBeGreaterThan(1_000_000);
    const held = () => process.memoryUsage().rss;
    const before = held();
    const { hostname, port } = new URL(gateway.origin);
    const sockets = await Promise.all(
      Array.from({ length: 15 }, async () => {
        const socket = connect(Number(port), hostname);
        socket.write('GET /graphiql HTTP/1.1\r\nhost: gateway\r\n\r\n');
        await new Promise((resolve) => socket.once('data', resolve));
        return socket.pause();
      }),
    );
    expect(held() - before).toBeLessThan(5 * page.length);
    for (const socket of sockets) socket.destroy();
  });
});
