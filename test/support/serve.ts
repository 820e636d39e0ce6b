import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { atEnd } from './atEnd.js';

/** Lets a server listen on loopback until the end of the test; gives its address as of plain HTTP, without a slash at its end. */
export async function serve(server: Server & { closeAllConnections?(): void }): Promise<string> {
  await once(server.listen(0, '127.0.0.1').unref(), 'listening');
  atEnd(() => {
    server.close();
    server.closeAllConnections?.();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
