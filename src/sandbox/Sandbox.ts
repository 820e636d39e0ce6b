import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errorAnswer, readBody, sendAnswer } from './Answer.js';
import { addDemoData, demoData } from './demoData.js';
import { answerTo, endpoints, routeOf } from './endpoints.js';
import { answerWithFault } from './Fault.js';
import { faultBook } from './FaultBook.js';
import { frontPage, hostedPage } from './hostedPage.js';
import { requestLog } from './RequestLog.js';
import { controlAnswer, controlPrefix, type SandboxControl } from './SandboxControl.js';
import { sandboxState } from './SandboxState.js';

export interface SandboxOptions {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Default 0: a free one. */
  readonly port?: number;
  /** The only accepted Service-API-Version; default 2024-01-01. */
  readonly apiVersion?: string;
  /** How long every answer of the API takes that no fault decides; default 0. */
  readonly latencyMs?: number;
  /** How long a job is processing after it is first read; default 15,000. */
  readonly jobDurationMs?: number;
  /** Most requests kept for assertions, default 10,000; 0 keeps none and only counts. */
  readonly logCapacity?: number;
  /** Serves the control surface over HTTP, too; default false. */
  readonly httpControl?: boolean;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/**
 * Starts a stand-in for the taxpayer-authorization service: a real REST service on the loopback interface that keeps the
 * interface strictly, has a hosted taxpayer flow and demo data, counts what it receives, and misbehaves when told to.
 */
export async function startSandbox(options: SandboxOptions) {
  const { clientId, clientSecret, apiVersion = '2024-01-01', latencyMs = 0, httpControl = false } = options;
  const { now = Date.now, jobDurationMs = 15_000, logCapacity = 10_000 } = options;
  const state = sandboxState(now, jobDurationMs);
  addDemoData(state);
  const log = requestLog(now, logCapacity);
  const faults = faultBook();
  const server = createServer({ keepAliveTimeout: 65_000 }, receive).on('connection', log.recordConnection);
  const service = { state, clientId, clientSecret, apiVersion, latencyMs, url: '' };
  const controlServer = createServer({ keepAliveTimeout: 65_000 }, receiveControl);
  const control: SandboxControl = {
    ...state,
    ...log,
    ...faults,
    setLatency: (latencyMs) => void Object.assign(service, { latencyMs }),
    setClientSecret: (clientSecret) => void Object.assign(service, { clientSecret }),
    dropConnections: () => server.closeAllConnections(),
    outage: async (isOut) => {
      await (isOut ? close(server) : listen(server, Number(new URL(service.url).port)));
    },
  };

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const { method = '', url: target = '' } = request;
    if (httpControl && target.startsWith(controlPrefix)) {
      receiveControl(request, response);
      return;
    }
    readBody(request, (body) => {
      const route = routeOf(method, target);
      log.record(route, request, body);
      try {
        if (method === 'GET' && target === '/') sendAnswer(response, frontPage());
        else if (route.endpoint === 'unknown') sendAnswer(response, route.refusal);
        else if (route.endpoint === 'hostedPage') sendAnswer(response, hostedPage(state, route, method, body));
        else {
          const { headers } = request;
          const call = { route, endpoint: endpoints[route.endpoint], target, headers, body, service };
          const fault = faults.takeFault(route);
          if (fault) answerWithFault(fault, { ...call, response, hold: faults.hold });
          else sendAnswer(response, answerTo(call), service.latencyMs);
        }
      } catch {
        // Metadata nested too deeply to be written again, or a fault that asks for an impossible answer.
        if (response.headersSent) response.destroy();
        else sendAnswer(response, errorAnswer(500, 'The sandbox cannot answer this'));
      }
    });
  }

  function receiveControl(request: IncomingMessage, response: ServerResponse): void {
    readBody(request, async (body) => sendAnswer(response, await controlAnswer(control, request, body)));
  }

  service.url = await listen(server, options.port);
  return {
    /** Base address of the REST service, without trailing slash. */
    url: service.url,
    /** Base address of the HTTP control surface that also answers during an outage. */
    controlUrl: httpControl ? await listen(controlServer) : undefined,
    clientId,
    clientSecret,
    apiVersion,
    demo: demoData,
    control,
    /** Stops listening and ends all connections, busy ones included. */
    stop: async () => {
      await Promise.all([close(server), close(controlServer)]);
    },
  };
}

/** Gives the address once connections are accepted; rejects when the port is taken. Port 0 is a free one. */
async function listen(server: Server, port = 0): Promise<string> {
  if (!server.listening) await once(server.listen(port, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Stops listening and cuts all connections; resolves when nothing is left. */
async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server.close(), 'close');
  server.closeAllConnections();
  await closed;
}
