import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { getIntrospectionQuery } from 'graphql';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { rawSocket } from '../support/rawSocket.js';
import { until } from '../support/redis.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ MAX_SUBSCRIPTIONS: '10000' });
});
afterAll(() => gateway.stop());

/** Messages of 40 kB: an answer to a ping is as large, one to an operation larger. */
const filler = 'x'.repeat(40_000);
const query = `${getIntrospectionQuery()} #${filler}`;

it.each([
  ['pings', 1000, 'pong', () => ({ type: 'ping', payload: { filler } })],
  ['operations', 500, 'next', (id: string) => ({ type: 'subscribe', id, payload: { query } })],
])('of a peer that does not read the answers to its %s nothing more is read', async (_, count, answer, message) => {
  const socket = rawSocket(gateway.origin);
  await socket.init();
  socket.socket.pause();
  for (let n = 0; n < count; n += 1) socket.send(message(`${n}`));
  // What the system's buffers take goes; the rest stays on our side for good.
  let left = Number.POSITIVE_INFINITY;
  await until(async () => {
    const before = left;
    left = socket.socket.bufferedAmount;
    if (left < before) await delay(1000);
    return left === before;
  });
  expect(left).toBeGreaterThan(10_000_000);
  socket.socket.resume();
  await until(() => socket.received.filter(({ type }) => type === answer).length === count, 60_000);
  socket.end();
});
