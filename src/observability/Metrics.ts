import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { DecisionCall } from '../auth/DecisionPoint.js';
import type { CacheTier, ReadReason } from '../cache/ReadRequest.js';
import { packageVersion } from '../config/config.js';
import type { TokenEvent } from '../datasources/TokenBroker.js';
import { errorCodes } from '../errors/errors.js';
import { type OperationRecord, transports } from '../operations/Operation.js';
import type { ValueKind } from '../schema/Vocabulary.js';
import { type Endpoint, endpoints, type TryOutcome } from '../upstream/ResilientFetch.js';

const helps = {
  gateway_operations_total:
    'Operations and refused requests, by root field as the schema spells it. failed: the gateway or the service is to blame.',
  gateway_operation_seconds: 'Time from a request to its answer. Streams are not in it.',
  gateway_errors_total: 'Errors in answers, by code.',
  gateway_upstream_calls_total: 'Tries of calls to the service.',
  gateway_upstream_seconds: 'Duration of one try of a call to the service.',
  gateway_calls_silenced_total: 'Times the fleet paused its calls to an endpoint, by reason.',
  gateway_breaker_open:
    'Whether a breaker of an endpoint refuses calls, for one caller or for all (1), or did in the last 10 seconds.',
  gateway_cache_reads_total: 'Reads by kind of entry, the tier that answered, and why memory alone did not.',
  gateway_store_seconds: 'Duration of one command of a store on Redis.',
  gateway_store_degraded: 'Whether the shared store is bypassed (1) or used (0).',
  gateway_token_events_total: 'What the token broker did besides answering.',
  gateway_token_budget_per_hour: 'Calls to the token endpoint allowed per hour; 0 means no limit.',
  gateway_token_budget_left: "Calls left of this hour's token budget, as last seen.",
  gateway_unknown_values_total: 'New values of the service that the schema has no name for.',
  gateway_key_set_age_seconds: 'Age of the oldest key set in use.',
  gateway_decision_seconds: 'Duration of a call to the decision point, by what came of it.',
  gateway_watchers: 'Readers that watch a refresh job or a token record now.',
  gateway_open_streams: 'Open sockets and event streams, by transport.',
  gateway_log_lines_dropped_total: 'Log lines that the reader of standard output did not take.',
  gateway_build_info: 'Always 1; its label is the version.',
};
type Name = keyof typeof helps;

/** Upper ends of all but the last bucket, in seconds. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * What the gateway counts. Every label is of a closed set: no id, URL or name that a caller chose can become one, so the
 * number of series is bounded and nothing confidential can be in them.
 */
export class Metrics {
  readonly registry = new Registry();

  readonly #operations = this.#tally('gateway_operations_total', 'operation', 'transport', 'outcome');
  readonly #operationSeconds = this.#histogram('gateway_operation_seconds', 'operation');
  readonly #errors = this.#counter('gateway_errors_total', 'code');
  readonly #upstreamCalls = this.#counter('gateway_upstream_calls_total', 'endpoint', 'outcome');
  readonly #upstreamSeconds = this.#histogram('gateway_upstream_seconds', 'endpoint');
  readonly gateClosed = this.#counter('gateway_calls_silenced_total', 'endpoint', 'reason');
  readonly #cacheReads = this.#tally('gateway_cache_reads_total', 'kind', 'tier', 'reason');
  readonly #storeSeconds = this.#histogram('gateway_store_seconds', 'command');
  readonly storeDegraded = this.#gauge('gateway_store_degraded');
  readonly #tokenEvents = this.#counter('gateway_token_events_total', 'event');
  readonly unknownValues = this.#counter('gateway_unknown_values_total', 'kind');
  readonly #decisionSeconds = this.#histogram('gateway_decision_seconds', 'outcome');
  readonly watchers = this.#gauge('gateway_watchers', 'kind');
  readonly openStreams = this.#gauge('gateway_open_streams', 'transport');
  #budget: { readonly left: number; readonly until: number } | undefined;

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    this.#gauge('gateway_build_info', 'version').set({ version: packageVersion() }, 1);
    // Series begin at 0: one that began with its first event would have no increase to alert on.
    for (const code of Object.keys(errorCodes)) this.#errors.inc({ code }, 0);
    for (const transport of transports) {
      for (const outcome of ['ok', 'failed']) this.#operations.add('none', transport, outcome, 0);
    }
    for (const kind of ['job', 'record']) this.watchers.set({ kind }, 0);
    this.#tokenEvents.inc({ event: 'budget-exhausted' satisfies TokenEvent }, 0);
    for (const kind of ['provider', 'taxpayer-status', 'job-status'] satisfies ValueKind[]) {
      this.unknownValues.inc({ kind }, 0);
    }
    for (const endpoint of endpoints) {
      for (const reason of ['rate-limited', 'credentials-rejected']) {
        this.gateClosed.inc({ endpoint, reason }, 0);
      }
    }
  }

  /** Counts and times an operation at its end. */
  onEnd({ facts, transport, outcome, label: operation, codes, events }: OperationRecord): void {
    this.#operations.add(operation, transport, outcome);
    for (const [code, count] of codes) this.#errors.inc({ code }, count);
    if (events === undefined) {
      this.#operationSeconds.observe({ operation }, (performance.now() - facts.startedAt) / 1000);
    }
  }

  onTry = (endpoint: Endpoint, outcome: TryOutcome, seconds: number): void => {
    this.#upstreamCalls.inc({ endpoint, outcome });
    this.#upstreamSeconds.observe({ endpoint }, seconds);
  };

  onDecisionCall = ({ outcome, seconds }: DecisionCall): void => this.#decisionSeconds.observe({ outcome }, seconds);
  onStoreCommand = (command: string, seconds: number): void => this.#storeSeconds.observe({ command }, seconds);
  onRead = (kind: string, tier: CacheTier, reason: ReadReason): void => this.#cacheReads.add(kind, tier, reason);
  onTokenEvent = (event: TokenEvent): void => this.#tokenEvents.inc({ event });
  onBudget = (left: number, resetsInMs: number): void => {
    this.#budget = { left, until: performance.now() + resetsInMs };
  };

  /** Shows what is left of a budget; nothing for an unlimited one. */
  showBudget(perHour: number): void {
    this.#gauge('gateway_token_budget_per_hour').set(perHour);
    if (perHour === 0) return;
    const left = () => (this.#budget && this.#budget.until > performance.now() ? this.#budget.left : perHour);
    this.#shown(Gauge, 'gateway_token_budget_left', [], () => [[[], left()]]);
  }

  /** Shows how many log lines were dropped so far because nothing read them. */
  showLogLinesDropped(count: () => number): void {
    this.#shown(Counter, 'gateway_log_lines_dropped_total', [], () => [[[], count()]]);
  }

  /** Shows whether the breaker of an endpoint refuses calls, of one caller or of all. */
  showBreakers(isOpen: (endpoint: Endpoint) => boolean): void {
    const values = () => endpoints.map((endpoint) => [[endpoint], Number(isOpen(endpoint))] as const);
    this.#shown(Gauge, 'gateway_breaker_open', ['endpoint'], values);
  }

  /** Shows the age of the oldest key set held; 0 while none is. Ages are in milliseconds. */
  showKeySets(agesMs: () => readonly number[]): void {
    const oldest = () => Math.max(0, ...agesMs().filter(Number.isFinite));
    this.#shown(Gauge, 'gateway_key_set_age_seconds', [], () => [[[], oldest() / 1000]]);
  }

  #counter<L extends string>(name: Name, ...labelNames: L[]): Counter<L> {
    return new Counter(this.#described(name, labelNames));
  }

  #gauge<L extends string>(name: Name, ...labelNames: L[]): Gauge<L> {
    return new Gauge(this.#described(name, labelNames));
  }

  #histogram<L extends string>(name: Name, ...labelNames: L[]): Histogram<L> {
    return new Histogram({ ...this.#described(name, labelNames), buckets });
  }

  #tally(name: Name, ...labelNames: readonly [string, string, string]): Tally {
    const tally = new Tally();
    this.#shown(Counter, name, labelNames, () => tally);
    return tally;
  }

  /** A metric whose values are asked for when it is read. */
  #shown(type: typeof Counter | typeof Gauge, name: Name, labelNames: readonly string[], values: () => Values): void {
    const collect = function (this: Counter | Gauge) {
      this.reset();
      for (const [labels, value] of values()) this.labels(...labels).inc(value);
    };
    new type({ ...this.#described(name, labelNames), collect });
  }

  #described<L extends string>(name: Name, labelNames: readonly L[]) {
    return { name, help: helps[name], labelNames, registers: [this.registry] };
  }
}

/** Values by those of the labels. */
type Values = Iterable<readonly [labels: readonly string[], value: number]>;

/** Counts by three values. A `Counter` alone would make a text of its labels for each event, which a hot read would feel. */
class Tally {
  readonly #counts = new Map<string, Map<string, Map<string, number>>>();

  add(first: string, second: string, third: string, count = 1): void {
    const counts = inner(inner(this.#counts, first), second);
    counts.set(third, (counts.get(third) ?? 0) + count);
  }

  *[Symbol.iterator](): Iterator<[labels: string[], count: number]> {
    for (const [first, seconds] of this.#counts) {
      for (const [second, thirds] of seconds) {
        for (const [third, count] of thirds) yield [[first, second, third], count];
      }
    }
  }
}

/** The map in a map, made when it is missing. */
function inner<K, L, V>(outer: Map<K, Map<L, V>>, key: K): Map<L, V> {
  const known = outer.get(key);
  if (known !== undefined) return known;
  const made = new Map<L, V>();
  outer.set(key, made);
  return made;
}
