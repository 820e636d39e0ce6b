import { EventEmitter, once } from 'node:events';
import type { Socket } from 'node:net';
import type { Received, Route } from '../../src/sandbox/endpoints.js';

/** What a request is counted as: `hostedPage` is a person in the taxpayer flow, `unknown` is off the contract. */
type EndpointName = Route['endpoint'];

/** One request as it came in. */
export interface LoggedRequest {
  readonly endpoint: EndpointName;
  readonly method: string;
  /** The request target, untouched. */
  readonly path: string;
  /** Names and values in the order and case received. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
}

/** Counts every request and keeps them for assertions, unless `keeps` is false. */
export function requestLog(keeps: boolean) {
  const none = { createClientLink: 0, taxpayerToken: 0, refreshJob: 0, hostedPage: 0, unknown: 0 };
  let counts: Record<EndpointName, number> = { ...none };
  let connections = 0;
  const sockets = new WeakSet<Socket>();
  const byTaxpayer = new Map<string, number>();
  const byJob = new Map<string, number>();
  const recorded = new EventEmitter().setMaxListeners(0);
  const entries: LoggedRequest[] = [];

  return {
    record({ route: { endpoint, taxpayerId, jobId }, request, body }: Received) {
      counts[endpoint] += 1;
      if (!sockets.has(request.socket)) connections += 1;
      sockets.add(request.socket);
      if (endpoint === 'taxpayerToken') count(byTaxpayer, taxpayerId);
      if (endpoint === 'refreshJob') count(byJob, `${taxpayerId}/${jobId}`);
      if (keeps) {
        const { method = '', url: path = '', rawHeaders } = request;
        const headers = rawHeaders.flatMap((name, i) => (i % 2 ? [] : [[name, rawHeaders[i + 1] ?? ''] as const]));
        entries.push({ endpoint, method, path, headers, body, receivedAt: Date.now() });
      }
      recorded.emit('request');
    },

    /** Since the start or the last reset; `connections` are new ones that a request came on. */
    counters: () => ({ ...counts, connections }),

    tokenCalls: (taxpayerId: string) => byTaxpayer.get(taxpayerId) ?? 0,
    jobCalls: (taxpayerId: string, jobId: string) => byJob.get(`${taxpayerId}/${jobId}`) ?? 0,

    /** Requests received, oldest first; of one endpoint when that is given. */
    requests: (endpoint?: EndpointName) =>
      entries.filter((entry) => endpoint === undefined || entry.endpoint === endpoint),

    /** Resolves as soon as the endpoint has been called that often since the start or the last reset. */
    async whenCalled(endpoint: EndpointName, times: number) {
      while (counts[endpoint] < times) await once(recorded, 'request');
    },

    /** Starts counters and request log afresh. */
    resetCounters() {
      counts = { ...none };
      connections = 0;
      byTaxpayer.clear();
      byJob.clear();
      entries.length = 0;
    },
  };
}

function count(counts: Map<string, number>, key: string) {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
