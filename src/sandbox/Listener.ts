import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const host = '127.0.0.1';

/** An HTTP server on the loopback interface that can go away and come back on the port it got first. */
export class Listener {
  readonly #server: Server;
  #port = 0;

  constructor(onRequest: RequestListener, onConnection: () => void = () => {}) {
    this.#server = createServer({ keepAliveTimeout: 65_000 }, onRequest).on('connection', onConnection);
  }

  /** Without trailing slash; known once it has listened. */
  get url(): string {
    return `http://${host}:${this.#port}`;
  }

  /** Resolves once connections are accepted; rejects when the port is taken. Port 0 picks a free one the first time. */
  async listen(port = this.#port): Promise<void> {
    if (this.#server.listening) return;
    await once(this.#server.listen(port, host), 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  dropConnections(): void {
    this.#server.closeAllConnections();
  }

  /** Stops listening and cuts all connections; resolves when nothing is left. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.dropConnections();
    await closed;
  }
}
