import { type ClientRequest, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';

/**
 * How long a connection may have been idle to be used again, in milliseconds. A service closes idle connections after
 * seconds: a request on a younger one does not meet the end of it.
 */
const idleMs = 1000;

/** What Node's client asks of an agent; it is missing in the types. */
type Agent = HttpAgent & { addRequest(request: ClientRequest, ...rest: unknown[]): void };

/** A request whose connection was never established cannot have arrived, whatever the error says. */
export interface Connection {
  /** Connected, and for `https:` with the certificate accepted. */
  established: boolean;
}

/** Connections for requests that must not be repeated: kept, because making one costs as much as a call, but not for long. */
export class RecentConnections {
  readonly #http = new HttpAgent({ keepAlive: true, timeout: idleMs });
  readonly #https = new HttpsAgent({ keepAlive: true, timeout: idleMs });

  /** The agent for one request; it notes on `connection` when the request has one. */
  agentFor(url: string, connection: Connection): HttpAgent {
    const isHttps = url.startsWith('https:');
    const shared = (isHttps ? this.#https : this.#http) as Agent;
    const addRequest: Agent['addRequest'] = (request, ...rest) => {
      request.once('socket', (socket: Duplex) => {
        if (request.reusedSocket) connection.established = true;
        else socket.once(isHttps ? 'secureConnect' : 'connect', () => (connection.established = true));
      });
      shared.addRequest(request, ...rest);
    };
    return Object.create(shared, { addRequest: { value: addRequest } });
  }

  /** Closes the kept connections. */
  stop(): void {
    this.#http.destroy();
    this.#https.destroy();
  }
}
