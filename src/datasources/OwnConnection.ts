import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';

/**
 * A connection for one request alone, which knows whether it was ever made: a request whose connection was not cannot
 * have arrived, whatever the error says.
 */
export class OwnConnection {
  #established = false;

  /** Connected, and for `https:` with the certificate accepted. */
  get established(): boolean {
    return this.#established;
  }

  agentFor(protocol: string): HttpAgent {
    const secure = protocol === 'https:';
    const agent = secure ? new HttpsAgent() : new HttpAgent();
    const connect = agent.createConnection.bind(agent);
    agent.createConnection = (options, callback) => {
      const socket = connect(options, callback) as Duplex;
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        this.#established = true;
      });
      return socket;
    };
    return agent;
  }
}
