import type { Server } from 'node:net';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';

export interface QuietOptions {
  /** How long nobody may have connected, in milliseconds. */
  readonly quietMs: number;
  /** How long to wait for that, in milliseconds. */
  readonly maxMs: number;
}

/**
 * Resolves just after the system had no connection to accept: the moment to close a listening socket, because the system
 * resets the connections it has made and nobody has accepted. Waits for quiet first; when there is none, somebody may connect
 * in the microseconds between.
 */
export async function whenNobodyConnects(server: Server, { quietMs, maxMs }: QuietOptions): Promise<void> {
  let accepted = 0;
  const count = () => {
    accepted += 1;
  };
  server.on('connection', count);
  const endsAt = performance.now() + maxMs;
  for (let before = -1; before !== accepted; ) {
    before = accepted;
    if (performance.now() < endsAt) await delay(quietMs);
    await nextTurn(); // Node.js accepts at most one connection in each turn of its event loop
  }
  server.off('connection', count);
}
