// Watchers of taxpayers, spread over the processes of a fleet, each on a WebSocket of its own.

import { setTimeout as delay } from 'node:timers/promises';
import { nextMessage, openSocket, subscribe } from '../caller.js';
import { inParallel } from '../inParallel.js';

const query = 'subscription ($id: ID!) { taxpayerTokenUpdated(taxpayerId: $id) { status } }';

/** The sockets of `count` watchers, each of which has its first record. */
export function watchAll({ gateways, ids }, count) {
  return inParallel(count, 50, async (n) => {
    const socket = await openSocket(gateways[n % gateways.length]);
    subscribe(socket, '1', { query, variables: { id: ids[n % ids.length] } });
    await nextMessage(socket);
    return socket;
  });
}

/** When the watcher is told next, and a failure unless it is told AUTHORIZED within a minute. */
export async function toldAuthorized(socket) {
  const from = performance.now();
  const text = await Promise.race([nextMessage(socket), delay(60_000, undefined, { ref: false })]);
  return { ms: performance.now() - from, failure: text?.includes('"AUTHORIZED"') ? undefined : `told ${text}` };
}
