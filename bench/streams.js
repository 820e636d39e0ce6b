// A process that opens many WebSockets or event streams. The message `{ kind, url, count, authorizations, bodies }` opens them;
// the answer is `{ opened, failure }`. To `{ ask: 'events' }` it answers how many events have come since the last such message.

import { once } from 'node:events';
import { connect } from 'node:net';
import { WebSocket } from 'ws';
import { forAll } from './production.js';

/** How many are opened at a time: the gateway limits unauthenticated connections. */
const atOnce = 50;
const timeoutMs = 30_000;
let events = 0;

process.on('message', async ({ ask, ...order }) => {
  if (ask === 'events') {
    process.send({ events });
    events = 0;
  } else process.send(await openAll(order));
});

async function openAll({ kind, url, count, authorizations, bodies }) {
  const open = { ws: openSocket, sse: openEventStream }[kind];
  const places = Array.from({ length: count }, (_, n) => n);
  let failure;
  const outcomes = await forAll(
    places,
    async (n) => {
      try {
        await open(new URL(url), authorizations[n % authorizations.length], bodies[n % bodies.length]);
        return true;
      } catch (error) {
        failure ??= String(error);
        return false;
      }
    },
    atOnce,
  );
  return { opened: outcomes.filter(Boolean).length, failure };
}

async function openSocket({ host }, authorization) {
  const socket = new WebSocket(`ws://${host}/graphql`, 'graphql-transport-ws', { perMessageDeflate: false });
  await once(socket, 'open', { signal: AbortSignal.timeout(timeoutMs) });
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
  const [data] = await once(socket, 'message', { signal: AbortSignal.timeout(timeoutMs) });
  if (JSON.parse(data).type !== 'connection_ack') throw new Error(`The socket was answered ${data}`);
}

/** Resolves with the first event. */
function openEventStream({ hostname, port, host }, authorization, body) {
  const head = Object.entries({
    host,
    authorization,
    'content-type': 'application/json',
    accept: 'text/event-stream',
    'content-length': Buffer.byteLength(body),
  });
  const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const socket = connect({ host: hostname, port: Number(port) }).setEncoding('latin1');
  socket.write(`POST /graphql/stream HTTP/1.1\r\n${lines}\r\n${body}`);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('No event came in time')), timeoutMs);
    const fail = (error) => {
      clearTimeout(timer);
      reject(error);
    };
    socket.on('error', fail).on('close', () => fail(new Error('The stream was closed')));
    socket.on('data', (text) => {
      if (text.includes('"errors":') || /^HTTP\/1\.1 [^2]/.test(text)) fail(new Error(text.slice(0, 300)));
      if (!text.includes('event: next')) return;
      events += 1;
      clearTimeout(timer);
      resolve();
    });
  });
}
