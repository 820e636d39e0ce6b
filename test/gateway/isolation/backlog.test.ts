import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { type RawSocket, rawSocket } from '../../support/rawSocket.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ MAX_SUBSCRIPTIONS: '10000' });
  const { id } = gateway.sandbox.control.addTaxpayer({ id: 'large', metadata: { filler } });
  expect((await gateway.query(query, { id })).errors).toBeUndefined();
});
afterAll(() => gateway.stop());

/** Messages of 40 kB, whose answers are as large. */
const filler = 'x'.repeat(40_000);
const query = `query ($id: ID!) { taxpayerToken(taxpayerId: $id) { metadata } } #${filler}`;

it('nothing more is read from a peer that does not read the answers to its operations', async () => {
  const message = (id: string) => ({ type: 'subscribe', id, payload: { query, variables: { id: 'large' } } });
  /** Many messages, and one that the service hears of. */
  const flood = (socket: RawSocket) => {
    for (let n = 0; n < 300; n += 1) socket.send(message(`${n}`));
    const { id } = gateway.sandbox.control.addTaxpayer();
    socket.send({
      type: 'subscribe',
      id: 'last',
      payload: { query: `{ taxpayerToken(taxpayerId: "${id}") { name } }` },
    });
  };
  const isLast = ({ type, id }: { type: string; id?: string }) => type === 'next' && id === 'last';
  const calls = () => gateway.sandbox.control.counters().taxpayerToken;
  const before = calls();
  const [deaf, reader] = [rawSocket(gateway.origin), rawSocket(gateway.origin)];
  await Promise.all([deaf.init(), reader.init()]);
  deaf.socket.pause();
  flood(deaf);
  // Of a peer that sends three times as much, later, everything is read meanwhile.
  for (let n = 0; n < 3; n += 1) {
    reader.received.length = 0;
    flood(reader);
    await reader.message(isLast);
  }
  expect(calls() - before).toBe(3);
  deaf.socket.resume();
  await deaf.message(isLast);
  expect(calls() - before).toBe(4);
  for (const socket of [deaf, reader]) socket.end();
});
