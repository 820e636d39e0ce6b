import { EventEmitter, once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type EndpointName, endpointNames, type Route } from './endpoints.js';

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

export type RequestLog = ReturnType<typeof requestLog>;

/** Counts every request and keeps the newest `capacity` of them for assertions; 0 keeps none. */
export function requestLog(now: () => number, capacity: number) {
  const counts = new Map(endpointNames.map((name) => [name, 0]));
  const byTaxpayer = new Map<string, number>();
  const byJob = new Map<string, number>();
  const recorded = new EventEmitter().setMaxListeners(0);
  let connections = 0;
  const entries: LoggedRequest[] = [];

  return {
    record({ endpoint, taxpayerId, jobId }: Route, request: IncomingMessage, body: string): void {
      count(counts, endpoint);
      if (endpoint === 'taxpayerToken') count(byTaxpayer, taxpayerId);
      if (endpoint === 'refreshJob') count(byJob, `${taxpayerId}/${jobId}`);
      if (capacity > 0) {
        const { method = '', url: path = '', rawHeaders } = request;
        const headers = rawHeaders.flatMap((name, i) => (i % 2 ? [] : [[name, rawHeaders[i + 1] ?? ''] as const]));
        entries.push({ endpoint, method, path, headers, body, receivedAt: now() });
        if (entries.length > capacity) entries.shift();
      }
      recorded.emit('request');
    },

    recordConnection(): void {
      connections += 1;
    },

    /** Since the start or the last reset; `connections` are TCP connections accepted, the keys of jobs `<taxpayerId>/<jobId>`. */
    counters: () => ({
      ...(Object.fromEntries(counts) as Record<EndpointName, number>),
      connections,
      taxpayerTokenByTaxpayer: Object.fromEntries(byTaxpayer),
      refreshJobByJob: Object.fromEntries(byJob),
    }),

    tokenCalls: (taxpayerId: string) => byTaxpayer.get(taxpayerId) ?? 0,
    jobCalls: (taxpayerId: string, jobId: string) => byJob.get(`${taxpayerId}/${jobId}`) ?? 0,

    /** Requests received, oldest first; of one endpoint when that is given. */
    requests: (endpoint?: EndpointName) =>
      entries.filter((entry) => endpoint === undefined || entry.endpoint === endpoint),

    /** Resolves as soon as the endpoint has been called that often since the start or the last reset. */
    async whenCalled(endpoint: EndpointName, times: number): Promise<void> {
      while ((counts.get(endpoint) ?? 0) < times) await once(recorded, 'request');
    },

    /** Starts counters and request log afresh. */
    resetCounters(): void {
      for (const name of endpointNames) counts.set(name, 0);
      byTaxpayer.clear();
      byJob.clear();
      connections = 0;
      entries.length = 0;
    },
  };
}

function count<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
