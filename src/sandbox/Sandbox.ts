import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { unreachable } from '../errors/errors.js';
import { type Answer, afterDelay, errorAnswer, sendAnswer } from './Answer.js';
import { answerWithFault } from './answerWithFault.js';
import { controlPrefix, controlRoutes } from './controlRoutes.js';
import { addDemoData, type DemoData, demoData } from './demoData.js';
import { FaultBook } from './Fault.js';
import { hostedFlow } from './hostedFlow.js';
import { Listener } from './Listener.js';
import { RequestLog } from './RequestLog.js';
import { type ApiRequest, type ApiRoute, RestApi } from './RestApi.js';
import { readBody } from './readBody.js';
import { type Route, routeOf } from './routeOf.js';
import { SandboxControl } from './SandboxControl.js';
import { SandboxState } from './SandboxState.js';

export interface SandboxOptions {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Default 0: a free one. */
  readonly port?: number;
  /** A loopback address; default 127.0.0.1. */
  readonly host?: '127.0.0.1' | '::1' | 'localhost';
  /** The only accepted Service-API-Version; default 2024-01-01. */
  readonly apiVersion?: string;
  /** How long every answer of the API takes that no fault decides; default 0. */
  readonly latencyMs?: number;
  /** How long a job is processing after it is first read; default 15,000. */
  readonly jobDurationMs?: number;
  /** Most requests kept for assertions, default 10,000; 0 keeps none and only counts. */
  readonly logCapacity?: number;
  /** How long an idle connection stays open; default 65,000. */
  readonly keepAliveTimeoutMs?: number;
  /** Serves the control surface over HTTP, too; default false. */
  readonly httpControl?: boolean;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** From 0 to below 1; makes generated ids and tokens repeatable. */
  readonly random?: () => number;
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
  const { clientId, clientSecret, apiVersion = '2024-01-01', host = '127.0.0.1' } = options;
  const { now = Date.now, random, jobDurationMs = 15_000, logCapacity = 10_000, httpControl = false } = options;
  let latencyMs = options.latencyMs ?? 0;

  const state = new SandboxState({ now, jobDurationMs, newId: random ? () => uuidOf(random) : randomUUID });
  addDemoData(state);
  const log = new RequestLog({ now, capacity: logCapacity });
  const faults = new FaultBook();
  const api = new RestApi({ state, clientId, clientSecret, apiVersion, dashboardUrl: () => service.url });
  const service = new Listener({
    host,
    keepAliveTimeoutMs: options.keepAliveTimeoutMs ?? 65_000,
    onRequest: receive,
    onConnection: () => log.recordConnection(),
  });
  const control = new SandboxControl({
    state,
    api,
    log,
    faults,
    setLatency: (ms) => {
      latencyMs = ms;
    },
    dropConnections: () => service.dropConnections(),
    outage: (isOut) => (isOut ? service.close() : service.listen()),
  });

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const { method = '', url: target = '', headers } = request;
    if (httpControl && target.startsWith(controlPrefix)) {
      receiveControl(request, response);
      return;
    }
    readBody(request, response, (body) => {
      const route = routeOf(method, target);
      log.record(route, request, body);
      try {
        if (route.endpoint === 'unknown') sendAnswer(response, unknownAnswer(route));
        else if (route.endpoint === 'hostedPage') sendAnswer(response, hostedFlow(state, route, body));
        else answerApi(route, { target, headers, body }, response);
      } catch {
        // Metadata nested too deeply to be written again, or a fault that asks for an impossible answer.
        if (response.headersSent) response.destroy();
        else sendAnswer(response, errorAnswer(500, 'The sandbox cannot answer this'));
      }
    });
  }

  function answerApi(route: ApiRoute, request: ApiRequest, response: ServerResponse): void {
    const carryOut = () => api.answer(route, request);
    const fault = faults.take(route);
    if (fault) {
      answerWithFault(fault, { route, carryOut, state }, response, faults);
      return;
    }
    const answer = carryOut();
    afterDelay(latencyMs, response, () => sendAnswer(response, answer));
  }

  function receiveControl(request: IncomingMessage, response: ServerResponse): void {
    readBody(request, response, (body) => {
      const { method = '', url: target = '' } = request;
      controlRoutes(control, { method, target, body }).then(
        (answer) => sendAnswer(response, answer),
        () => sendAnswer(response, errorAnswer(500, 'The control failed')),
      );
    });
  }

  await service.listen(options.port ?? 0);
  const controlService = httpControl
    ? new Listener({ host, keepAliveTimeoutMs: 65_000, onRequest: receiveControl })
    : undefined;
  await controlService?.listen();
  return {
    url: service.url,
    controlUrl: controlService?.url,
    clientId,
    clientSecret,
    apiVersion,
    demo: demoData,
    control,
    stop: async () => {
      await Promise.all([service.close(), controlService?.close()]);
    },
  };
}

function unknownAnswer(route: Extract<Route, { endpoint: 'unknown' }>): Answer {
  switch (route.problem) {
    case 'no-such-path':
      return errorAnswer(404, 'No such path');
    case 'bad-encoding':
      return errorAnswer(400, 'The path is not percent-encoded UTF-8');
    case 'wrong-method':
      return errorAnswer(405, 'The path has another method', { allow: route.allow });
    default:
      return unreachable(route);
  }
}

function uuidOf(random: () => number): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join('');
  const variant = '89ab'.charAt(Math.floor(random() * 4));
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}
