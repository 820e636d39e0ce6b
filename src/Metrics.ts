import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CacheTier, ReadReason } from './datasources/LeasedCache.js';
import { type Endpoint, endpoints, type TryOutcome } from './datasources/ResilientFetch.js';
import type { TokenEvent } from './datasources/TokenBroker.js';
import type { OperationObserver } from './edge/observeOperations.js';
import { type ErrorCode, errorCodes } from './errors.js';

const latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export type Transport = 'http' | 'ws' | 'sse';
export type RequestOutcome = 'ok' | 'errors' | 'refused';

/** The series of a metric by their labels, each looked up in the registry once: that lookup costs more than the counting. */
class Series<Child> {
  readonly #find: (...labels: string[]) => Child;
  readonly #found = new Map<string, Map<string, Map<string, Child>>>();

  constructor(find: (...labels: string[]) => Child) {
    this.#find = find;
  }

  of(first: string, second = '', third = ''): Child {
    const known = this.#found.get(first)?.get(second)?.get(third);
    if (known !== undefined) return known;
    const child = this.#find(first, second, third);
    const bySecond = this.#found.get(first) ?? new Map<string, Map<string, Child>>();
    this.#found.set(first, bySecond.set(second, (bySecond.get(second) ?? new Map<string, Child>()).set(third, child)));
    return child;
  }
}

/**
 * What the gateway counts. Every label is of a closed set: no id, URL or name that a caller chose can become one, so the
 * number of series is bounded and nothing confidential can be in them.
 */
export class Metrics {
  readonly registry = new Registry();

  readonly requests = this.#counter('gateway_requests_total', 'GraphQL requests answered.', [
    'transport',
    'outcome',
  ] as const);
  readonly requestSeconds = this.#histogram('gateway_request_seconds', 'Time to answer a GraphQL request.', [
    'transport',
  ] as const);
  readonly executions = this.#counter('gateway_executions_total', 'Operations over HTTP, by what executed them.', [
    'way',
  ] as const);
  readonly operations = this.#counter(
    'gateway_operations_total',
    'GraphQL operations executed, by root field as the schema spells it.',
    ['operation', 'outcome'] as const,
  );
  readonly operationSeconds = this.#histogram('gateway_operation_seconds', 'Time to execute a GraphQL operation.', [
    'operation',
  ] as const);
  readonly errors = this.#counter('gateway_errors_total', 'Errors in answers, by code.', ['code'] as const);
  readonly upstreamCalls = this.#counter('gateway_upstream_calls_total', 'Tries of calls to the service.', [
    'endpoint',
    'outcome',
  ] as const);
  readonly upstreamSeconds = this.#histogram(
    'gateway_upstream_seconds',
    'Duration of one try of a call to the service.',
    ['endpoint'] as const,
  );
  readonly breakerOpen = this.#gauge(
    'gateway_breaker_open',
    'Whether the breaker of an endpoint is open (1) or half open (0.5).',
    ['endpoint'] as const,
    'max',
  );
  readonly gateClosed = this.#counter(
    'gateway_calls_silenced_total',
    'Times an endpoint was closed for the fleet, by reason.',
    ['endpoint', 'reason'] as const,
  );
  readonly cacheReads = this.#counter(
    'gateway_cache_reads_total',
    'Reads by kind of entry, the tier that answered, and why memory alone did not.',
    ['kind', 'tier', 'reason'] as const,
  );
  readonly tokenCallsSaved = this.#counter(
    'gateway_token_calls_saved_total',
    'Reads of a token that needed no call to the token endpoint.',
    [] as const,
  );
  readonly leaseWaitSeconds = this.#histogram('gateway_lease_wait_seconds', "Time spent waiting for another's fetch.", [
    'kind',
  ] as const);
  readonly tokenEvents = this.#counter('gateway_token_events_total', 'What the token broker did besides answering.', [
    'event',
  ] as const);
  readonly tokenBudgetPerHour = this.#gauge(
    'gateway_token_budget_per_hour',
    'Calls to the token endpoint allowed per hour; 0 means no limit.',
    [] as const,
    'max',
  );
  readonly links = this.#counter('gateway_client_links_total', 'Creations of client links, by outcome.', [
    'outcome',
  ] as const);
  readonly unknownValues = this.#counter(
    'gateway_unknown_values_total',
    'New values of the service that the schema has no name for.',
    ['kind'] as const,
  );
  readonly storeDegraded = this.#gauge(
    'gateway_store_degraded',
    'Whether the shared store is bypassed (1) or used (0).',
    [] as const,
    'max',
  );
  readonly watchers = this.#gauge('gateway_job_watchers', 'Readers that watch a refresh job now.', [] as const);
  readonly connections = this.#gauge('gateway_open_streams', 'Open sockets and event streams, by transport.', [
    'transport',
  ] as const);
  readonly spansDropped = this.#counter(
    'gateway_trace_spans_dropped_total',
    'Spans that the trace collector did not take.',
    [] as const,
  );
  #budget: { readonly left: number; readonly until: number } | undefined;

  readonly #requestCounts = new Series((transport = '', outcome = '') => this.requests.labels(transport, outcome));
  readonly #requestTimes = new Series((transport = '') => this.requestSeconds.labels(transport));
  readonly #operationCounts = new Series((operation = '', outcome = '') => this.operations.labels(operation, outcome));
  readonly #operationTimes = new Series((operation = '') => this.operationSeconds.labels(operation));
  readonly #executionCounts = new Series((way = '') => this.executions.labels(way));
  readonly #readCounts = new Series((kind = '', tier = '', reason = '') => this.cacheReads.labels(kind, tier, reason));

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    // A series that begins with its first event has no increase to alert on.
    for (const code of Object.keys(errorCodes)) this.errors.inc({ code: code as ErrorCode }, 0);
    for (const endpoint of endpoints) {
      this.breakerOpen.set({ endpoint }, 0);
      for (const reason of ['rate-limited', 'credentials-rejected']) this.gateClosed.inc({ endpoint, reason }, 0);
    }
  }

  /** Counts an answered request that began at `startedAt` (of `performance.now()`). */
  onRequest(transport: Transport, outcome: RequestOutcome, startedAt: number): void {
    this.#requestCounts.of(transport, outcome).inc();
    this.#requestTimes.of(transport).observe((performance.now() - startedAt) / 1000);
  }

  onExecution(way: 'plan' | 'apollo'): void {
    this.#executionCounts.of(way).inc();
  }

  /** Shows what is left of a budget; of an unlimited one there is nothing to show. */
  showBudget(perHour: number, now: () => number = Date.now): void {
    this.tokenBudgetPerHour.set(perHour);
    if (perHour === 0) return;
    const budget = () => (this.#budget !== undefined && this.#budget.until > now() ? this.#budget.left : perHour);
    this.#measured('gateway_token_budget_left', "Calls left of this hour's token budget, as last seen.", 'min', budget);
  }

  /** Shows the age of the oldest key set held; nothing while none is. Times are epoch milliseconds. */
  showKeySets(readAt: () => readonly (number | undefined)[]): void {
    this.#measured('gateway_key_set_age_seconds', 'Age of the oldest key set in use.', 'max', () => {
      const times = readAt().filter((time) => time !== undefined);
      return times.length === 0 ? undefined : (Date.now() - Math.min(...times)) / 1000;
    });
  }

  onBudget = (left: number, resetsInMs: number): void => {
    this.#budget = { left, until: Date.now() + resetsInMs };
  };

  /** Counts and times operations, on whatever way they are executed. */
  observeOperation: OperationObserver = () => {
    const startedAt = performance.now();
    return (label, _type, errors) => {
      this.#operationCounts.of(label, errors > 0 ? 'errors' : 'ok').inc();
      this.#operationTimes.of(label).observe((performance.now() - startedAt) / 1000);
    };
  };

  onTry = (endpoint: Endpoint, outcome: TryOutcome, seconds: number): void => {
    this.upstreamCalls.inc({ endpoint, outcome });
    this.upstreamSeconds.observe({ endpoint }, seconds);
  };

  onBreaker = (endpoint: Endpoint, state: 'open' | 'half-open' | 'closed'): void => {
    this.breakerOpen.set({ endpoint }, { open: 1, 'half-open': 0.5, closed: 0 }[state]);
  };

  onRead = (kind: string, tier: CacheTier, reason: ReadReason): void => {
    this.#readCounts.of(kind, tier, reason).inc();
    if (kind === 'token' && tier !== 'fetched') this.tokenCallsSaved.inc();
  };

  onTokenEvent = (event: TokenEvent): void => {
    this.tokenEvents.inc({ event });
  };

  onError = (code: ErrorCode): void => {
    this.errors.inc({ code });
  };

  #counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter({ name, help, labelNames: [...labelNames], registers: [this.registry] });
  }

  /** `aggregator`: what the processes of one machine make of it together. */
  #gauge<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    aggregator: 'sum' | 'max' = 'sum',
  ): Gauge<L> {
    return new Gauge({ name, help, labelNames: [...labelNames], registers: [this.registry], aggregator });
  }

  #measured(name: string, help: string, aggregator: 'min' | 'max', measure: () => number | undefined): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      aggregator,
      collect() {
        const value = measure();
        if (value === undefined) this.reset();
        else this.set(value);
      },
    });
  }

  #histogram<L extends string>(name: string, help: string, labelNames: readonly L[]): Histogram<L> {
    return new Histogram({
      name,
      help,
      labelNames: [...labelNames],
      buckets: latencyBuckets,
      registers: [this.registry],
    });
  }
}
