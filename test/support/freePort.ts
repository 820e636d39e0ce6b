import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that the system gives to outgoing connections and to `listen(0)`: those could be taken before they are used. */
const firstPort = 20_000;
const endOfPorts = 32_768;

/** A port of this machine's loopback that nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(firstPort, endOfPorts);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number) {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE' || code === 'EACCES') return false;
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}
