import { type ClientRequest, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';

/**
 * How long a connection may have been idle to be used again, in milliseconds. A service that closes idle connections does
 * so after seconds: whoever sends on one that young does not meet the end of it.
 */
const idleMs = 1000;

/** Connections for requests that must not be repeated: kept, because making one costs as much as a call, but not for long. */
export class RecentConnections {
  readonly #agents = {
    http: new HttpAgent({ keepAlive: true, timeout: idleMs }),
    https: new HttpsAgent({ keepAlive: true, timeout: idleMs }),
  };

  /** For one request, which can then tell whether its connection was ever made. */
  forOneRequest(): OneConnection {
    return new OneConnection(this.#agents);
  }

  /** Closes the kept connections. */
  stop(): void {
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }
}

/** What one request was sent on: one whose connection was not made cannot have arrived, whatever the error says. */
class OneConnection {
  readonly #agents: { readonly http: HttpAgent; readonly https: HttpAgent };
  #established = false;

  constructor(agents: { readonly http: HttpAgent; readonly https: HttpAgent }) {
    this.#agents = agents;
  }

  /** Connected, and for `https:` with the certificate accepted. */
  get established(): boolean {
    return this.#established;
  }

  /** The shared agent of the protocol, listening in on this request's socket. */
  agentFor(protocol: string): HttpAgent {
    const secure = protocol === 'https:';
    const shared = secure ? this.#agents.https : this.#agents.http;
    const addRequest = (request: ClientRequest, ...rest: unknown[]) => {
      request.once('socket', (socket: Duplex & { readonly connecting?: boolean }) => {
        if (request.reusedSocket) this.#established = true;
        else socket.once(secure ? 'secureConnect' : 'connect', () => (this.#established = true));
      });
      (shared as unknown as { addRequest: (...all: unknown[]) => void }).addRequest(request, ...rest);
    };
    return Object.create(shared, { addRequest: { value: addRequest } }) as HttpAgent;
  }
}
