// Watchers of taxpayers, spread over the processes of a fleet: at most 25 subscriptions on each WebSocket.

import { once } from 'node:events';
import { WebSocket } from 'ws';

const perSocket = 25;
const query = 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }';

/** Resolves when each of the `count` watchers has its first record. */
export async function watchAll(gateways, ids, count) {
  const watchers = Array.from({ length: count }, (_, n) => ({ n, id: ids[n % ids.length], events: [] }));
  const sockets = [];
  for (let from = 0; from < count; from += perSocket) {
    const { origin } = gateways[sockets.length % gateways.length];
    sockets.push(await open(origin, watchers.slice(from, from + perSocket)));
  }
  await until(() => watchers.every(({ events }) => events.length > 0), 30_000);
  const told = watchers.map(({ events }) => events.length);
  return {
    /** For each watcher, when its next event came, and a failure unless it is the only one and AUTHORIZED. */
    async toldWithin(ms) {
      const from = performance.now();
      await until(() => watchers.every(({ events }, n) => events.length > told[n]), ms);
      return watchers.map(({ events }, n) => {
        const [event, second] = events.slice(told[n]);
        const isRight = event?.status === 'AUTHORIZED' && second === undefined;
        return { ms: (event?.at ?? from + ms) - from, failure: isRight ? undefined : JSON.stringify(events) };
      });
    },
    end: () => {
      for (const socket of sockets) socket.terminate();
    },
  };
}

async function open(origin, watchers) {
  const socket = new WebSocket(`${origin.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  socket.on('message', (data) => {
    const { type, id, payload } = JSON.parse(String(data));
    if (type === 'connection_ack') {
      for (const { n, id: taxpayer } of watchers) {
        const operation = { query, variables: { id: taxpayer } };
        socket.send(JSON.stringify({ type: 'subscribe', id: `${n}`, payload: operation }));
      }
    }
    if (type !== 'next' && type !== 'error') return;
    const { status } = payload.data?.taxpayerTokenUpdated ?? { status: JSON.stringify(payload) };
    watchers.find(({ n }) => `${n}` === id)?.events.push({ status, at: performance.now() });
  });
  socket.send(JSON.stringify({ type: 'connection_init' }));
  return socket;
}

async function until(isSo, ms) {
  const giveUpAt = performance.now() + ms;
  while (!isSo() && performance.now() < giveUpAt) await new Promise((resolve) => setTimeout(resolve, 20));
}
