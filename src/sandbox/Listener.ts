import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface ListenerOptions {
  readonly host: string;
  readonly keepAliveTimeoutMs: number;
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  readonly onConnection?: () => void;
}

const loopbackHosts = ['127.0.0.1', '::1', 'localhost'];

/** An HTTP server that can go away and come back on the port it got first. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #port: number | undefined;

  constructor(options: ListenerOptions) {
    if (!loopbackHosts.includes(options.host)) {
      throw new RangeError(`The sandbox listens on ${loopbackHosts.join(', ')} only`);
    }
    this.#options = options;
    this.#server = createServer({ keepAliveTimeout: options.keepAliveTimeoutMs }, options.onRequest);
    this.#server.on('connection', (socket) => {
      options.onConnection?.();
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Without trailing slash. Throws before the first {@link Listener.listen}. */
  get url(): string {
    if (this.#port === undefined) throw new Error('The sandbox does not listen yet');
    const { host } = this.#options;
    return `http://${host.includes(':') ? `[${host}]` : host}:${this.#port}`;
  }

  /** Resolves once connections are accepted; rejects when the port is taken. Port 0 picks a free one the first time. */
  async listen(port = 0): Promise<void> {
    if (this.#server.listening) return;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#port ?? port, this.#options.host, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Stops listening and cuts all connections; resolves when nothing is left. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.dropConnections();
    await closed;
  }
}
