import { type ClientRequest, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';

/**
 * How long a connection may have been idle to be used again, in milliseconds. A service that closes idle connections does
 * so after seconds: whoever sends on one that young does not meet the end of it.
 */
const idleMs = 1000;

/** What Node's client asks of an agent; it is missing in the types. */
type Agent = HttpAgent & { addRequest(request: ClientRequest, ...rest: unknown[]): void };

/** Connections for requests that must not be repeated: kept, because making one costs as much as a call, but not for long. */
export class RecentConnections {
  readonly #agents = {
    http: this.#noting(new HttpAgent({ keepAlive: true, timeout: idleMs }), 'connect'),
    https: this.#noting(new HttpsAgent({ keepAlive: true, timeout: idleMs }), 'secureConnect'),
  };
  /** What the request that is made next is sent on. */
  #next: OneConnection | undefined;

  /**
   * The agent for one request, and what it will be sent on. The request has to be made in the same turn: that is how the
   * two are known to belong together.
   */
  forOneRequest(url: string): { readonly agent: HttpAgent; readonly connection: OneConnection } {
    const connection = { established: false };
    this.#next = connection;
    return { agent: url.startsWith('https:') ? this.#agents.https : this.#agents.http, connection };
  }

  /** Closes the kept connections. */
  stop(): void {
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  #noting<A extends HttpAgent>(agent: A, connected: 'connect' | 'secureConnect'): A {
    const noting = agent as A & Agent;
    const { addRequest } = noting;
    noting.addRequest = (request, ...rest) => {
      const connection = this.#next;
      this.#next = undefined;
      if (connection) {
        request.once('socket', (socket: Duplex) => {
          if (request.reusedSocket) connection.established = true;
          else socket.once(connected, () => (connection.established = true));
        });
      }
      addRequest.call(noting, request, ...rest);
    };
    return agent;
  }
}

/** What one request is sent on: one whose connection was not made cannot have arrived, whatever the error says. */
export interface OneConnection {
  /** Connected, and for `https:` with the certificate accepted. */
  established: boolean;
}
