import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, errorAnswer, readBody, sendAnswer } from './Answer.js';
import { addDemoData, demoData } from './demoData.js';
import { answerOfApi, type Received, routeOf } from './endpoints.js';
import { frontPage, hostedPage } from './hostedPage.js';
import { sandboxState } from './SandboxState.js';

export interface SandboxOptions {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Default 0: a free one. */
  readonly port?: number;
  /** The only accepted Service-API-Version; default 2024-01-01. */
  readonly apiVersion?: string;
  /** How long a job is processing after it is first read, in milliseconds; default 15,000. */
  readonly jobDurationMs?: number;
  /** Answers each request in place of the sandbox, whose own answer is {@link answerTo}. For tests. */
  readonly intercept?: (received: Received, response: ServerResponse) => void;
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/**
 * Starts a stand-in for the taxpayer-authorization service: a real REST service on the loopback interface that keeps the
 * interface strictly, and has a hosted taxpayer flow and demo data.
 */
export async function startSandbox(options: SandboxOptions) {
  const { clientId, clientSecret, apiVersion = '2024-01-01', jobDurationMs = 15_000 } = options;
  const { port = 0, intercept = (received, response) => sendAnswer(response, answerTo(received)) } = options;
  const state = sandboxState(jobDurationMs);
  addDemoData(state);
  const service = { state, clientId, clientSecret, apiVersion, url: '' };
  const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
    readBody(request, (body) => {
      try {
        intercept({ route: routeOf(request), request, body, service }, response);
      } catch {
        // Metadata nested too deeply to be written again.
        sendAnswer(response, errorAnswer(500, 'The sandbox cannot answer this'));
      }
    });
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  service.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...service,
    demo: demoData,
    /** Stops listening and ends all connections, busy ones included. */
    stop: async () => {
      if (!server.listening) return;
      const closed = once(server.close(), 'close');
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Carries the request out and gives the right answer. */
export function answerTo(received: Received): Answer {
  const { route, request } = received;
  if (request.method === 'GET' && request.url === '/') return frontPage();
  if (route.endpoint === 'unknown') return route.refusal;
  return route.endpoint === 'hostedPage' ? hostedPage(received) : answerOfApi(route.endpoint, received);
}
