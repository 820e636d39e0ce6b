import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorAnswer, readBody, sendAnswer } from './Answer.js';
import { addDemoData, type DemoData, demoData } from './demoData.js';
import { type ApiCall, endpoints, routeOf } from './endpoints.js';
import { answerWithFault } from './Fault.js';
import { faultBook } from './FaultBook.js';
import { hostedPage } from './hostedPage.js';
import { Listener } from './Listener.js';
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

/** A running sandbox. */
export interface Sandbox {
  /** Base address of the REST service, without trailing slash. */
  readonly url: string;
  /** Base address of the HTTP control surface that also answers during an outage; undefined without `httpControl`. */
  readonly controlUrl: string | undefined;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly apiVersion: string;
  readonly demo: DemoData;
  readonly control: SandboxControl;
  /** Stops listening and ends all connections, busy ones included. */
  stop(): Promise<void>;
}

/**
 * Starts a stand-in for the taxpayer-authorization service: a real REST service on the loopback interface that keeps the
 * interface strictly, has a hosted taxpayer flow and demo data, counts what it receives, and misbehaves when told to.
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { clientId, apiVersion = '2024-01-01', httpControl = false } = options;
  const { now = Date.now, jobDurationMs = 15_000, logCapacity = 10_000 } = options;
  let { clientSecret, latencyMs = 0 } = options;

  const state = sandboxState(now, jobDurationMs);
  addDemoData(state);
  const log = requestLog(now, logCapacity);
  const faults = faultBook();
  const listener = new Listener(receive, () => log.recordConnection());
  const controlListener = httpControl ? new Listener(receiveControl) : undefined;
  const control: SandboxControl = {
    ...state,
    ...log,
    ...faults,
    setLatency: (ms) => {
      latencyMs = ms;
    },
    setClientSecret: (secret) => {
      clientSecret = secret;
    },
    dropConnections: () => listener.dropConnections(),
    outage: (isOut) => (isOut ? listener.close() : listener.listen()),
  };

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const { method = '', url: target = '' } = request;
    if (httpControl && target.startsWith(controlPrefix)) {
      receiveControl(request, response);
      return;
    }
    readBody(request, response, (body) => {
      const route = routeOf(method, target);
      log.record(route, request, body);
      try {
        if (route.endpoint === 'unknown') sendAnswer(response, route.refusal);
        else if (route.endpoint === 'hostedPage') sendAnswer(response, hostedPage(state, route, body));
        else {
          const service = { state, clientId, clientSecret, apiVersion, url: listener.url };
          answerApi({ route, target, headers: request.headers, body, service }, response);
        }
      } catch {
        // Metadata nested too deeply to be written again, or a fault that asks for an impossible answer.
        if (response.headersSent) response.destroy();
        else sendAnswer(response, errorAnswer(500, 'The sandbox cannot answer this'));
      }
    });
  }

  function answerApi(call: ApiCall, response: ServerResponse): void {
    const endpoint = endpoints[call.route.endpoint];
    const withQuery = call.target.includes('?');
    const carryOut = () => (withQuery ? errorAnswer(400, 'The endpoint takes no query string') : endpoint.answer(call));
    const fault = faults.takeFault(call.route);
    if (fault) answerWithFault(fault, { ...call, endpoint, carryOut, response, hold: faults.hold });
    else sendAnswer(response, carryOut(), latencyMs);
  }

  function receiveControl(request: IncomingMessage, response: ServerResponse): void {
    readBody(request, response, (body) => {
      const { method = '', url: target = '' } = request;
      controlAnswer(control, { method, target, body }).then(
        (answer) => sendAnswer(response, answer),
        () => sendAnswer(response, errorAnswer(500, 'The control failed')),
      );
    });
  }

  await listener.listen(options.port);
  await controlListener?.listen();
  return {
    url: listener.url,
    controlUrl: controlListener?.url,
    clientId,
    clientSecret,
    apiVersion,
    demo: demoData,
    control,
    stop: async () => {
      await Promise.all([listener.close(), controlListener?.close()]);
    },
  };
}
