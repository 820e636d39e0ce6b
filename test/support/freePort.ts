import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports of this worker alone, each given once: another might take it before it is used. They are below those that the system gives
 * to outgoing connections and to `listen(0)`.
 */
let latest = 8 * randomInt(2500, 3750) + (Number(process.env['JEST_WORKER_ID']) % 8 || 0);

/** A port of this machine's loopback that nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  for (;;) {
    latest += 8;
    const port = latest;
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number) {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return false; // in use
  }
  server.close();
  await once(server, 'close');
  return true;
}
