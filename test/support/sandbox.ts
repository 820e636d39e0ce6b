import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { sendAnswer } from '../../src/sandbox/answers.js';
import { answerTo, type Received } from '../../src/sandbox/endpoints.js';
import * as shipped from '../../src/sandbox/Sandbox.js';
import type { SandboxJob, SandboxState, SandboxTaxpayer } from '../../src/sandbox/state.js';
import { atEnd } from './atEnd.js';
import { breachIn } from './breach.js';
import { answerWithFault, marked } from './fault.js';
import { faultBook } from './faultBook.js';
import { requestLog } from './requestLog.js';
import { times } from './times.js';

export interface SandboxOptions {
  /** What it expects of its client. */
  readonly clientId: string;
  readonly clientSecret: string;
  /** How long a job is processing after it is first read, in milliseconds. */
  readonly jobDurationMs: number;
  /** Whether requests are kept for assertions, or only counted. Default true. */
  readonly keepsRequests: boolean;
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/**
 * Starts the sandbox as it ships, only that it refuses requests that are not as the interface says, with what sets up a test and
 * says what the service has seen. Changes hold for the next request received.
 */
export async function startSandbox(options: Partial<SandboxOptions> = {}) {
  const { clientId = 'test-client', clientSecret = 'test-secret', jobDurationMs, keepsRequests = true } = options;
  const log = requestLog(keepsRequests);
  const faults = faultBook();
  let presentSecret = clientSecret;
  let latencyMs = 0;
  let isOut = false;
  let running = await shipped.startSandbox({ intercept });
  const { url } = running;
  const state = jobDurationMs === undefined ? running.state : withJobsOf(jobDurationMs, running.state);

  function intercept(received: Received, response: ServerResponse) {
    // With the secret of today, and from the first state: after an outage another sandbox listens.
    const service = { ...received.service, state, clientId, clientSecret: presentSecret };
    // A client whose ids change the path is caught.
    const isDotted = /\/(\.|%2e){1,2}(\/|\?|$)/i.test(received.request.url ?? '');
    const call = {
      ...received,
      service,
      route: isDotted ? { ...received.route, endpoint: 'unknown' as const } : received.route,
    };
    log.record(call);
    const { endpoint } = call.route;
    const isOfApi = endpoint !== 'unknown' && endpoint !== 'hostedPage';
    const fault = isOfApi && faults.takeFault(call.route);
    if (fault) return answerWithFault(fault, call, response, faults.hold);
    const right = breachIn(call) ?? answerTo(call);
    const answer = endpoint === 'hostedPage' ? right : marked(right);
    sendAnswer(response, isOfApi && latencyMs > 0 ? { ...answer, delayMs: latencyMs } : answer);
  }

  const updateTaxpayer = (id: string, changes: Partial<SandboxTaxpayer>) => change(state.taxpayers.get(id), changes);
  /** Gives the taxpayer a new access token; the old one is refused from now on. */
  const rotateToken = (id: string) => updateTaxpayer(id, { accessToken: `sandbox-token-not-real-${randomUUID()}` });

  const stop = () => running.stop();
  atEnd(stop);
  return {
    ...running,
    clientId,
    clientSecret,
    ...log,
    ...faults,
    addTaxpayer: state.addTaxpayer,
    /** Adds that many alike, each with an id and a token of its own, and gives the ids. */
    addTaxpayers: (count: number, props: Partial<SandboxTaxpayer> = {}) =>
      times(count, () => state.addTaxpayer(props).id),
    updateTaxpayer,
    rotateToken,
    rotateAllTokens: () => [...state.taxpayers.keys()].forEach(rotateToken),
    addJob: state.addJob,
    updateJob: (taxpayerId: string, jobId: string, changes: Partial<SandboxJob>) =>
      change(state.jobs.get(`${taxpayerId}/${jobId}`), changes),
    /** How long every answer takes from now on that no fault decides, in milliseconds. */
    setLatency(ms: number) {
      latencyMs = ms;
    },
    /** From now on the old client secret is refused. */
    setClientSecret(secret: string) {
      presentSecret = secret;
    },
    /** true: cuts all connections and refuses new ones. false: listens again on the same port. Resolves when done. */
    async outage(wanted: boolean) {
      if (wanted === isOut) return;
      isOut = wanted;
      if (isOut) await running.stop();
      else running = await shipped.startSandbox({ port: Number(new URL(url).port), intercept });
    },
    stop,
  };
}

/** The state in which jobs, those of the demo data included, are processing for so long. */
function withJobsOf(durationMs: number, state: SandboxState): SandboxState {
  for (const job of state.jobs.values()) job.durationMs = durationMs;
  return { ...state, addJob: (props) => state.addJob({ durationMs, ...props }) };
}

/** @throws TypeError when there is no such record */
function change<T extends object>(record: T | undefined, changes: Partial<T>): T {
  return Object.assign(record as T, changes);
}
