import type { IncomingMessage } from 'node:http';
import type { EndpointName, Route } from './routeOf.js';

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

/** Requests received since the start or the last reset. */
export interface Counters extends Readonly<Record<EndpointName, number>> {
  /** TCP connections accepted. */
  readonly connections: number;
  readonly taxpayerTokenByTaxpayer: Readonly<Record<string, number>>;
  /** Keys are `<taxpayerId>/<jobId>`. */
  readonly refreshJobByJob: Readonly<Record<string, number>>;
}

interface Entry {
  readonly endpoint: EndpointName;
  readonly request: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>;
  readonly body: string;
  readonly receivedAt: number;
}

interface Waiter {
  readonly endpoint: EndpointName;
  readonly times: number;
  readonly resolve: () => void;
}

export interface RequestLogOptions {
  readonly now: () => number;
  /** Most requests kept, the newest ones; 0 keeps none and only counts. */
  readonly capacity: number;
}

/** Keys kept per counter, so that a long benchmark over ever new ids cannot fill the memory. */
const maxCounterKeys = 200_000;

/** Counts every request and keeps the latest ones for assertions. */
export class RequestLog {
  readonly #options: RequestLogOptions;
  #entries: Entry[] = [];
  #counts = zeroCounts();
  #connections = 0;
  readonly #byTaxpayer = new Map<string, number>();
  readonly #byJob = new Map<string, number>();
  #waiters: Waiter[] = [];

  constructor(options: RequestLogOptions) {
    this.#options = options;
  }

  record(route: Route, request: IncomingMessage, body: string): void {
    const { capacity, now } = this.#options;
    this.#counts[route.endpoint] += 1;
    if (route.endpoint === 'taxpayerToken') countKey(this.#byTaxpayer, route.taxpayerId);
    if (route.endpoint === 'refreshJob') countKey(this.#byJob, `${route.taxpayerId}/${route.jobId}`);
    if (capacity > 0) {
      const { method, url, rawHeaders } = request;
      const kept = { endpoint: route.endpoint, request: { method, url, rawHeaders }, body, receivedAt: now() };
      this.#entries.push(kept as Entry);
      // Trimming at twice the capacity copies each entry once at most.
      if (this.#entries.length >= 2 * capacity) this.#entries = this.#entries.slice(-capacity);
    }
    if (this.#waiters.length > 0) this.#wake();
  }

  recordConnection(): void {
    this.#connections += 1;
  }

  counters(): Counters {
    return {
      ...this.#counts,
      connections: this.#connections,
      taxpayerTokenByTaxpayer: Object.fromEntries(this.#byTaxpayer),
      refreshJobByJob: Object.fromEntries(this.#byJob),
    };
  }

  tokenCalls(taxpayerId: string): number {
    return this.#byTaxpayer.get(taxpayerId) ?? 0;
  }

  jobCalls(taxpayerId: string, jobId: string): number {
    return this.#byJob.get(`${taxpayerId}/${jobId}`) ?? 0;
  }

  /** Oldest first; of one endpoint when that is given. */
  requests(endpoint?: EndpointName): LoggedRequest[] {
    const latest = this.#options.capacity > 0 ? this.#entries.slice(-this.#options.capacity) : [];
    return latest.filter((entry) => endpoint === undefined || entry.endpoint === endpoint).map(loggedRequest);
  }

  /** Resolves as soon as the endpoint has been called that often since the start or the last reset. */
  whenCalled(endpoint: EndpointName, times: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push({ endpoint, times, resolve });
      this.#wake();
    });
  }

  reset(): void {
    this.#entries = [];
    this.#counts = zeroCounts();
    this.#connections = 0;
    this.#byTaxpayer.clear();
    this.#byJob.clear();
  }

  #wake(): void {
    const due = this.#waiters.filter(({ endpoint, times }) => this.#counts[endpoint] >= times);
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const { resolve } of due) resolve();
  }
}

function zeroCounts(): Record<EndpointName, number> {
  return { createClientLink: 0, taxpayerToken: 0, refreshJob: 0, hostedPage: 0, unknown: 0 };
}

function countKey(counts: Map<string, number>, key: string): void {
  const count = counts.get(key) ?? 0;
  if (count > 0 || counts.size < maxCounterKeys) counts.set(key, count + 1);
}

function loggedRequest({ endpoint, request, body, receivedAt }: Entry): LoggedRequest {
  const { method = '', url = '', rawHeaders } = request;
  const headers: [string, string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) headers.push([rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '']);
  return { endpoint, method, path: url, headers, body, receivedAt };
}
