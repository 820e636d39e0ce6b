import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { sandboxClient } from '../config/config.js';
import { inUrl } from '../process/hosts.js';
import { errorAnswer, sendAnswer } from './answers.js';
import { addDemoData, demoData, demoRows, firstQuery } from './demoData.js';
import { answerTo, type Received, routeOf } from './endpoints.js';
import { sandboxState } from './state.js';

interface SandboxOptions {
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** Default 0: a free one. */
  readonly port?: number | undefined;
  /** Answers each request in place of the sandbox, whose own answer is {@link answerTo}. For tests. */
  readonly intercept?: (received: Received, response: ServerResponse) => void;
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/**
 * Starts a stand-in for the taxpayer-authorization service: a real REST service with a hosted taxpayer flow and demo data. (That
 * the gateway's requests are as the interface says is checked by the tests, which refuse others.)
 */
export async function startSandbox(options: SandboxOptions = {}) {
  const {
    host = '127.0.0.1',
    port = 0,
    intercept = (received, response) => sendAnswer(response, answerTo(received)),
  } = options;
  const state = sandboxState();
  addDemoData(state);
  const service = { state, ...sandboxClient, url: '' };
  const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
    text(request)
      .then((body) => intercept({ route: routeOf(request), request, body, service }, response))
      // For example, when metadata is nested too deeply for JSON.stringify.
      .catch(() => sendAnswer(response, errorAnswer(500, 'The sandbox cannot answer this')));
  });
  await once(server.listen(port, host), 'listening');
  service.url = `http://${inUrl(host)}:${(server.address() as AddressInfo).port}`;
  return {
    ...service,
    demo: demoData,
    demoRows,
    firstQuery,
    /** Stops listening and ends all connections, busy ones included. */
    stop: async () => {
      if (!server.listening) return;
      const closed = once(server.close(), 'close');
      server.closeAllConnections();
      await closed;
    },
  };
}
