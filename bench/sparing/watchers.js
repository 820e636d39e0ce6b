// Watchers of taxpayers, spread over the processes of a fleet, each on a WebSocket of its own.

import { setTimeout as delay } from 'node:timers/promises';
import { openSocket, subscribe } from '../caller.js';
import { inParallel } from '../inParallel.js';

const query = 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }';

/** Resolves when each of the `count` watchers has its first record. */
export async function watchAll({ gateways, ids }, count) {
  const watchers = await inParallel(count, 50, (n) => watch(gateways[n % gateways.length], ids[n % ids.length]));
  await until(() => watchers.every(({ events }) => events.length > 0), 30_000);
  const told = watchers.map(({ events }) => events.length);
  return {
    /** For each watcher, when its next event came, and a failure unless it is the only one and AUTHORIZED. */
    async toldWithin(ms) {
      const from = performance.now();
      await until(() => watchers.every(({ events }, n) => events.length > told[n]), ms);
      return watchers.map(({ events }, n) => {
        const [event, second] = events.slice(told[n]);
        const isRight = event?.text.includes('"AUTHORIZED"') && second === undefined;
        return { ms: (event?.at ?? from + ms) - from, failure: isRight ? undefined : JSON.stringify(events) };
      });
    },
    end: () => {
      for (const { socket } of watchers) socket.terminate();
    },
  };
}

async function watch({ url }, id) {
  const socket = await openSocket({ url });
  const events = [];
  socket.on('message', (data) => {
    const text = String(data);
    if (/"type":"(next|error)"/.test(text)) events.push({ text, at: performance.now() });
  });
  subscribe(socket, '1', { query, variables: { id } });
  return { socket, events };
}

async function until(isSo, ms) {
  const giveUpAt = performance.now() + ms;
  while (!isSo() && performance.now() < giveUpAt) await delay(20);
}
