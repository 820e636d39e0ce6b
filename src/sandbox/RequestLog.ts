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

/** Keys kept per counter, so that a long benchmark over ever new ids cannot fill the memory. */
const maxCounterKeys = 200_000;

export type RequestLog = ReturnType<typeof requestLog>;

/** Counts every request and keeps the newest `capacity` of them for assertions; 0 keeps none. */
export function requestLog(now: () => number, capacity: number) {
  const counts = new Map<EndpointName, number>();
  const byTaxpayer = new Map<string, number>();
  const byJob = new Map<string, number>();
  const waiting = new Set<() => void>();
  let connections = 0;
  let entries: LoggedRequest[] = [];

  return {
    record({ endpoint, taxpayerId, jobId }: Route, request: IncomingMessage, body: string): void {
      count(counts, endpoint);
      if (endpoint === 'taxpayerToken') count(byTaxpayer, taxpayerId);
      if (endpoint === 'refreshJob') count(byJob, `${taxpayerId}/${jobId}`);
      if (capacity > 0) {
        const { method = '', url: path = '', rawHeaders } = request;
        const headers = rawHeaders.flatMap((name, i) => (i % 2 ? [] : [[name, rawHeaders[i + 1] ?? ''] as const]));
        entries.push({ endpoint, method, path, headers, body, receivedAt: now() });
        // Trimming at twice the capacity copies each entry once at most.
        if (entries.length >= 2 * capacity) entries = entries.slice(-capacity);
      }
      for (const check of waiting) check();
    },

    recordConnection(): void {
      connections += 1;
    },

    /** Since the start or the last reset; `connections` are TCP connections accepted, the keys of jobs `<taxpayerId>/<jobId>`. */
    counters: () => ({
      ...(Object.fromEntries(endpointNames.map((name) => [name, counts.get(name) ?? 0])) as Record<
        EndpointName,
        number
      >),
      connections,
      taxpayerTokenByTaxpayer: Object.fromEntries(byTaxpayer),
      refreshJobByJob: Object.fromEntries(byJob),
    }),

    tokenCalls: (taxpayerId: string) => byTaxpayer.get(taxpayerId) ?? 0,
    jobCalls: (taxpayerId: string, jobId: string) => byJob.get(`${taxpayerId}/${jobId}`) ?? 0,

    /** Requests received, oldest first; of one endpoint when that is given. */
    requests(endpoint?: EndpointName): LoggedRequest[] {
      const latest = capacity > 0 ? entries.slice(-capacity) : [];
      return endpoint === undefined ? latest : latest.filter((entry) => entry.endpoint === endpoint);
    },

    /** Resolves as soon as the endpoint has been called that often since the start or the last reset. */
    whenCalled: (endpoint: EndpointName, times: number) =>
      new Promise<void>((resolve) => {
        const check = () => {
          if ((counts.get(endpoint) ?? 0) < times) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),

    /** Starts counters and request log afresh. */
    resetCounters(): void {
      for (const map of [counts, byTaxpayer, byJob]) map.clear();
      connections = 0;
      entries = [];
    },
  };
}

function count<Key>(counts: Map<Key, number>, key: Key): void {
  const before = counts.get(key) ?? 0;
  if (before > 0 || counts.size < maxCounterKeys) counts.set(key, before + 1);
}
