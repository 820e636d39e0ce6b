import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CacheTier } from '../cache/Entry.js';
import { packageVersion } from '../config/config.js';
import type { TokenEvent } from '../datasources/TokenBroker.js';
import { errorCodes } from '../errors/errors.js';
import { type OperationRecord, transports } from '../operations/Operation.js';
import { type Endpoint, endpoints, type TryOutcome } from '../upstream/ResilientFetch.js';

/** Upper ends of all but the last bucket, in seconds. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * What the gateway counts. Every label is of a closed set: no id, URL or name that a caller chose can become one, so the
 * number of series is bounded and nothing confidential can be in them.
 */
export class Metrics {
  readonly registry = new Registry();

  readonly #operations = this.#metric(
    Counter,
    'gateway_operations_total',
    'Operations and refused requests, by root field as the schema spells it. failed: the gateway or the service is to blame.',
    'operation transport outcome',
  );
  readonly #operationSeconds = this.#histogram(
    'gateway_operation_seconds',
    'Time from a request to its answer. Streams are not in it.',
    'operation',
  );
  readonly #errors = this.#metric(Counter, 'gateway_errors_total', 'Errors in answers, by code.', 'code');
  readonly #upstreamCalls = this.#metric(
    Counter,
    'gateway_upstream_calls_total',
    'Tries of calls to the service.',
    'endpoint outcome',
  );
  readonly #upstreamSeconds = this.#histogram(
    'gateway_upstream_seconds',
    'Duration of one try of a call to the service.',
    'endpoint',
  );
  readonly callsPaused = this.#metric(
    Counter,
    'gateway_calls_paused_total',
    'Times the fleet paused its calls to an endpoint, by reason.',
    'endpoint reason',
  );
  readonly #cacheReads = this.#metric(
    Counter,
    'gateway_cache_reads_total',
    'Reads by kind of entry, and the tier that answered. Operations that share a read count once.',
    'kind tier',
  );
  readonly #storeSeconds = this.#histogram(
    'gateway_store_seconds',
    'Duration of one command of a store on Redis.',
    'command',
  );
  readonly storeDegraded = this.#metric(
    Gauge,
    'gateway_store_degraded',
    'Whether the shared store is bypassed (1) or used (0).',
  );
  readonly #tokenEvents = this.#metric(
    Counter,
    'gateway_token_events_total',
    'What the token broker did besides answering.',
    'event',
  );
  readonly unknownValues = this.#metric(
    Counter,
    'gateway_unknown_values_total',
    'New values of the service that the schema has no name for.',
    'kind',
  );
  readonly certificateEnds = this.#metric(
    Gauge,
    'gateway_certificate_expiration_timestamp_seconds',
    'When the certificate in use expires, by the setting of its file.',
    'setting',
  );
  readonly decisionSeconds = this.#histogram(
    'gateway_decision_seconds',
    'Duration of a call to the decision point, by what came of it.',
    'outcome',
  );
  readonly watchers = this.#metric(
    Gauge,
    'gateway_watchers',
    'Readers that watch a refresh job or a token record now.',
    'kind',
  );
  readonly openStreams = this.#metric(
    Gauge,
    'gateway_open_streams',
    'Open sockets and event streams, by transport.',
    'transport',
  );
  /** What is left of the budget, as last seen, and until when (monotonic). */
  #budget = { left: 0, until: 0 };

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    this.#metric(Gauge, 'gateway_build_info', 'Always 1; its label is the version.', 'version').add(packageVersion());
    // Series begin at 0: one that began with its first event would have no increase to alert on.
    for (const code of Object.keys(errorCodes)) this.#errors.add(code, 0);
    for (const transport of transports) this.#operations.add(`none ${transport} ok`, 0);
    this.showFailures(['none', 'several', 'introspection']);
    for (const kind of ['job', 'token']) this.watchers.add(kind, 0);
    for (const event of ['budget-exhausted', 'watch-share-exhausted'] satisfies TokenEvent[]) {
      this.#tokenEvents.add(event, 0);
    }
    for (const endpoint of endpoints) {
      for (const reason of ['rate-limited', 'credentials-rejected']) this.callsPaused.add(`${endpoint} ${reason}`, 0);
    }
  }

  /** Begins the series of failed operations with these labels at 0. */
  showFailures(labels: readonly string[]): void {
    for (const label of labels)
      for (const transport of transports) this.#operations.add(`${label} ${transport} failed`, 0);
  }

  /** Counts and times an operation at its end. */
  onEnd({ facts, transport, outcome, label: operation, codes, events }: OperationRecord): void {
    this.#operations.add(`${operation} ${transport} ${outcome}`);
    for (const [code, count] of codes) this.#errors.add(code, count);
    if (events === undefined) {
      this.#operationSeconds.observe({ operation }, (performance.now() - facts.startedAt) / 1000);
    }
  }

  onTry = (endpoint: Endpoint, outcome: TryOutcome, seconds: number): void => {
    this.#upstreamCalls.add(`${endpoint} ${outcome}`);
    this.#upstreamSeconds.observe({ endpoint }, seconds);
  };

  onStoreCommand = (command: string, seconds: number): void => this.#storeSeconds.observe({ command }, seconds);
  onRead = (kind: string, tier: CacheTier): void => this.#cacheReads.add(`${kind} ${tier}`);
  onTokenEvent = (event: TokenEvent): void => this.#tokenEvents.add(event);
  onBudget = (left: number, resetsInMs: number): void => {
    this.#budget = { left, until: performance.now() + resetsInMs };
  };

  /** Shows the token budget and, unless it is 0 (unlimited), what is left of it. */
  showBudget(perHour: number): void {
    const allowed = 'Calls to the token endpoint allowed per hour; 0 means no limit.';
    this.#metric(Gauge, 'gateway_token_budget_per_hour', allowed).add('', perHour);
    if (perHour === 0) return;
    const left = "Calls left of this hour's token budget, as last seen.";
    this.#metric(Gauge, 'gateway_token_budget_left', left, '', () =>
      this.#budget.until > performance.now() ? this.#budget.left : perHour,
    );
  }

  /** Shows how many log lines were dropped so far because nothing read them. */
  showLogLinesDropped(count: () => number): void {
    const help = 'Log lines that the reader of standard output did not take.';
    this.#metric(Counter, 'gateway_log_lines_dropped_total', help, '', count);
  }

  /** Shows the age of the oldest key set; 0 where no token is verified. Ages are in milliseconds. */
  showKeySets(agesMs: () => readonly number[]): void {
    const help = 'Time since the oldest key set was read or, before that, since the start.';
    this.#metric(Gauge, 'gateway_key_set_age_seconds', help, '', () => Math.max(0, ...agesMs()) / 1000);
  }

  #histogram(name: string, help: string, label: string): Histogram {
    return new Histogram({ name, help, labelNames: [label], registers: [this.registry], buckets });
  }

  /** Adds a metric and returns its values. `labels` are names, joined by spaces; `read` gives the only value at each scrape. */
  #metric(type: typeof Counter | typeof Gauge, name: string, help: string, labels = '', read?: () => number): Values {
    const values = new Values();
    const labelNames = labels.split(' ').filter(Boolean);
    const collect = function (this: Counter | Gauge) {
      if (read) values.set('', read());
      this.reset();
      for (const [joined, value] of values) this.labels(...joined.split(' ', labelNames.length)).inc(value);
    };
    new type({ name, help, labelNames, registers: [this.registry], collect });
    return values;
  }
}

/**
 * The values of a metric by those of its labels, joined by spaces (no label's value holds a space), or by '' without labels.
 * They reach prom-client at a scrape: its `Counter` checks and joins the labels at each event, which would slow a hot read.
 */
class Values extends Map<string, number> {
  add(labels: string, change = 1): void {
    this.set(labels, (this.get(labels) ?? 0) + change);
  }
}
