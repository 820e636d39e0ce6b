import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket, WebSocketServer } from 'ws';
import { keepAlive } from '../../../src/live/socketBounds.js';
import { atEnd } from '../../support/atEnd.js';
import { post, quickPolls, startTestGateway } from '../../support/gateway.js';
import { addJob, watchJob } from '../../support/liveJob.js';
import { streamReader } from '../../support/streamReader.js';
import { until } from '../../support/until.js';

const everyMs = 400; // a peer on a busy machine has to read megabytes that the system holds before it sees a ping

/** Our end of a socket that is kept alive, and the peer's. */
async function connected({ autoPong }: { readonly autoPong: boolean }) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const peer = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, { autoPong });
  const [[ours]] = (await Promise.all([once(server, 'connection'), once(peer, 'open')])) as [[WebSocket], unknown];
  keepAlive(ours, everyMs);
  atEnd(() => server.close());
  atEnd(() => peer.terminate());
  return { ours, peer };
}

it('a peer that answers only every other ping is not ended', async () => {
  const { ours, peer } = await connected({ autoPong: false });
  let pings = 0;
  peer.on('ping', () => {
    pings += 1;
    if (pings % 2 === 0) peer.pong();
  });
  await until(() => pings >= 10);
  expect(ours.readyState).toBe(WebSocket.OPEN);
});

it('a peer for whom bytes wait is not ended for a pong that is late, and is asked again once it has read them', async () => {
  const { ours, peer } = await connected({ autoPong: true });
  peer.pause();
  ours.send(Buffer.alloc(30_000_000)); // more than the system's buffers take
  await until(() => ours.bufferedAmount > 0);
  await delay(10 * everyMs);
  expect(ours.readyState).toBe(WebSocket.OPEN);
  const answered = once(ours, 'pong');
  peer.resume();
  await answered;
  expect([ours.readyState, ours.bufferedAmount]).toEqual([WebSocket.OPEN, 0]);
});

const gatewayThatKeepsAlive = () => startTestGateway(quickPolls, {}, { keepAliveMs: everyMs });

it('the gateway ends a socket whose peer answers no ping', async () => {
  const { origin } = await gatewayThatKeepsAlive();
  const peer = new WebSocket(`${origin.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', { autoPong: false });
  atEnd(() => peer.terminate());
  await once(peer, 'open');
  peer.send('{"type":"connection_init"}');
  const [code] = await once(peer, 'close');
  expect(code).toBe(1006); // without a close frame
});

it.each([
  ['text/event-stream', '\n\n', ':'],
  ['multipart/mixed;subscriptionSpec=1.0', '--graphql', '\r\ncontent-type: application/json\r\n\r\n{}\r\n'],
])('a %s on which nothing happens shows signs of life', async (accept, separator, sign) => {
  const gateway = await gatewayThatKeepsAlive();
  const response = await post(`${gateway.origin}/graphql`, { query: watchJob, variables: addJob(gateway) }, { accept });
  const pieces = streamReader(response);
  await until(async () => (await pieces.next(separator))?.includes('PROCESSING') === true);
  expect([await pieces.next(separator), await pieces.next(separator)]).toEqual([sign, sign]);
});
