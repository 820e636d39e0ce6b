import { type ClientRequest, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';

/**
 * How long a connection may have been idle to carry a request that must not be repeated, in milliseconds. A service closes
 * idle connections after seconds, maybe just as one is used: a request on a younger one does not meet the end of it.
 */
const idleMs = 1000;

/** What Node's client asks of an agent; it is missing in the types. */
type Agent = HttpAgent & { addRequest(request: ClientRequest, ...rest: unknown[]): void };

/** A request whose connection was never established cannot have arrived, whatever the error says. */
export interface Connection {
  /** Connected, and for `https:` with the certificate accepted. */
  established: boolean;
}

/** The kept connections to the service. */
export class Connections {
  readonly #any = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };
  /** Kept, because making one costs as much as a call, but not for long. */
  readonly #recent = {
    http: new HttpAgent({ keepAlive: true, timeout: idleMs }),
    https: new HttpsAgent({ keepAlive: true, timeout: idleMs }),
  };

  /** For requests that can be repeated. */
  agentFor(url: string): HttpAgent {
    return this.#any[protocolOf(url)];
  }

  /** For one request that must not be repeated; notes on `connection` when it has one. */
  recentAgentFor(url: string, connection: Connection): HttpAgent {
    const protocol = protocolOf(url);
    const shared = this.#recent[protocol] as Agent;
    const addRequest: Agent['addRequest'] = (request, ...rest) => {
      request.once('socket', (socket: Duplex) => {
        if (request.reusedSocket) connection.established = true;
        else socket.once(protocol === 'https' ? 'secureConnect' : 'connect', () => (connection.established = true));
      });
      shared.addRequest(request, ...rest);
    };
    return Object.create(shared, { addRequest: { value: addRequest } });
  }

  stop(): void {
    for (const { http, https } of [this.#any, this.#recent]) {
      http.destroy();
      https.destroy();
    }
  }
}

function protocolOf(url: string): 'http' | 'https' {
  return url.startsWith('https:') ? 'https' : 'http';
}
