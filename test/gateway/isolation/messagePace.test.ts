import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { WebSocket } from 'ws';
import { Quota } from '../../../src/admission/Quota.js';
import { callerKey } from '../../../src/auth/caller.js';
import { startTrustedProvider, type TrustedProvider } from '../../support/authenticated.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { type RawSocket, rawSocket } from '../../support/rawSocket.js';

let provider: TrustedProvider;
let gateway: TestGateway;
const open: RawSocket[] = [];

beforeAll(async () => {
  provider = await startTrustedProvider();
  gateway = await startTestGateway({ ...provider.env, MAX_BODY_BYTES: '1000000' });
});

afterEach(() => {
  for (const socket of open.splice(0)) socket.end();
});

afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

/** A socket of a caller of its own, so that no turn of another is taken. */
async function connected(sub: string): Promise<RawSocket> {
  const socket = rawSocket(gateway.origin);
  open.push(socket);
  await socket.init({ authorization: `Bearer ${await provider.token({ sub })}` });
  return socket;
}

/** Resolves once all that was sent before has been read. */
async function allRead(socket: RawSocket, mark: string): Promise<void> {
  socket.send({ id: mark, type: 'subscribe', payload: { query: '{ __typename }' } });
  await socket.message(({ id, type }) => id === mark && type === 'complete');
}

const kinds: readonly [string, (socket: RawSocket) => void][] = [
  ['pings', ({ send }) => send({ type: 'ping' })],
  ['pongs', ({ send }) => send({ type: 'pong' })],
  ['ends of operations that it does not have', ({ send }) => send({ type: 'complete', id: 'unknown' })],
  ['ping frames', ({ socket }) => socket.ping()],
  ['pong frames', ({ socket }) => socket.pong()],
];

describe('A flood on a socket', () => {
  it.each(kinds)('of a few hundred %s is read, and the socket works afterwards', async (kind, send) => {
    const socket = await connected(`busy with ${kind}`);
    for (let n = 1; n <= 300; n += 1) send(socket);
    await allRead(socket, 'last');
  });

  it.each(kinds)('of %s at once closes it, while another caller is answered', async (kind, send) => {
    const [hostile, honest] = [await connected(`hostile with ${kind}`), await connected('honest')];
    const inOneWrite = (socket: WebSocket, act: () => void) => {
      const transport = (socket as unknown as { _socket: { cork(): void; uncork(): void } })._socket;
      transport.cork();
      act();
      transport.uncork();
    };
    inOneWrite(hostile.socket, () => {
      for (let n = 0; n < 5000; n += 1) send(hostile);
    });
    await allRead(honest, kind);
    expect(await hostile.closed).toEqual({ code: 1013, reason: 'Too many messages' });
  });
});

it('the time that reading a large message takes is billed to the caller', async () => {
  const spend = jest.spyOn(Quota.prototype, 'spend');
  try {
    const socket = await connected('ada');
    const payload = { filler: Array.from({ length: 100_000 }, () => [0, {}]) };
    spend.mockClear();
    socket.send({ type: 'pong', payload });
    await allRead(socket, 'read');
    expect(spend.mock.calls).toContainEqual([callerKey(provider.issuer, 'ada'), expect.any(Number)]);
  } finally {
    spend.mockRestore();
  }
});
