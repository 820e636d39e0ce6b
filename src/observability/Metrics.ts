import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { DecisionCall } from '../auth/DecisionPoint.js';
import type { CacheTier, ReadReason } from '../cache/ReadRequest.js';
import type { TokenEvent } from '../datasources/TokenBroker.js';
import { errorCodes } from '../errors/errors.js';
import { type OperationRecord, transports } from '../operations/OperationRecord.js';
import type { ValueKind } from '../schema/Vocabulary.js';
import { type Endpoint, endpoints, type TryOutcome } from '../upstream/ResilientFetch.js';
import { HotCounter, HotHistogram } from './hotMetrics.js';

const helps = {
  gateway_operations_total:
    'Operations and refused requests, by root field as the schema spells it. failed: the gateway or the service is to blame.',
  gateway_operation_seconds: 'Time from a request to its answer. Streams are not in it.',
  gateway_executions_total: 'Operations, by what executed them.',
  gateway_errors_total: 'Errors in answers, by code.',
  gateway_upstream_calls_total: 'Tries of calls to the service.',
  gateway_upstream_seconds: 'Duration of one try of a call to the service.',
  gateway_calls_silenced_total: 'Times the fleet paused its calls to an endpoint, by reason.',
  gateway_breaker_open:
    'Whether a breaker of an endpoint refuses calls, for one caller or for all (1), or did in the last 10 seconds.',
  gateway_cache_reads_total: 'Reads by kind of entry, the tier that answered, and why memory alone did not.',
  gateway_lease_wait_seconds: "Time spent waiting for another's fetch.",
  gateway_token_events_total: 'What the token broker did besides answering.',
  gateway_token_budget_per_hour: 'Calls to the token endpoint allowed per hour; 0 means no limit.',
  gateway_token_budget_left: "Calls left of this hour's token budget, as last seen.",
  gateway_client_links_total: 'Creations of client links, by outcome.',
  gateway_unknown_values_total: 'New values of the service that the schema has no name for.',
  gateway_store_degraded: 'Whether the shared store is bypassed (1) or used (0).',
  gateway_store_set_aside_total: 'Damaged databases on disk that were renamed.',
  gateway_key_set_age_seconds: 'Age of the oldest key set in use.',
  gateway_decisions_total:
    'Decisions about taxpayers that no token lists, by whether they were asked for or remembered.',
  gateway_decision_calls_total: 'Calls to the decision point.',
  gateway_decision_seconds: 'Duration of a call to the decision point.',
  gateway_job_watchers: 'Readers that watch a refresh job now.',
  gateway_record_watchers: 'Readers that watch a token record now.',
  gateway_open_streams: 'Open sockets and event streams, by transport.',
  gateway_untrusted_documents_total:
    'Operations run whose document is not a trusted one (TRUSTED_DOCUMENTS_MODE=report).',
  gateway_log_lines_dropped_total: 'Log lines that the reader of standard output did not take.',
  gateway_trace_spans_dropped_total: 'Spans that the trace collector did not take.',
};
type Name = keyof typeof helps;

/**
 * What the gateway counts. Every label is of a closed set: no id, URL or name that a caller chose can become one, so the
 * number of series is bounded and nothing confidential can be in them.
 */
export class Metrics {
  readonly registry = new Registry();

  readonly #operations = this.#hotCounter('gateway_operations_total', 'operation', 'transport', 'outcome');
  readonly #executions = this.#hotCounter('gateway_executions_total', 'way');
  readonly #operationSeconds = this.#hotHistogram('gateway_operation_seconds', 'operation');
  readonly #errors = this.#hotCounter('gateway_errors_total', 'code');
  readonly #upstreamCalls = this.#hotCounter('gateway_upstream_calls_total', 'endpoint', 'outcome');
  readonly #upstreamSeconds = this.#hotHistogram('gateway_upstream_seconds', 'endpoint');
  readonly gateClosed = this.#counter('gateway_calls_silenced_total', 'endpoint', 'reason');
  readonly #cacheReads = this.#hotCounter('gateway_cache_reads_total', 'kind', 'tier', 'reason');
  readonly #leaseWaitSeconds = this.#hotHistogram('gateway_lease_wait_seconds', 'kind');
  readonly #tokenEvents = this.#hotCounter('gateway_token_events_total', 'event');
  readonly #tokenBudgetPerHour = this.#gauge('gateway_token_budget_per_hour');
  readonly #links = this.#hotCounter('gateway_client_links_total', 'outcome');
  readonly #decisions = this.#hotCounter('gateway_decisions_total', 'decision', 'from');
  readonly #decisionCalls = this.#hotCounter('gateway_decision_calls_total', 'endpoint', 'outcome');
  readonly #decisionSeconds = this.#hotHistogram('gateway_decision_seconds', 'endpoint');
  readonly unknownValues = this.#counter('gateway_unknown_values_total', 'kind');
  readonly untrustedDocuments = this.#counter('gateway_untrusted_documents_total');
  readonly storeDegraded = this.#gauge('gateway_store_degraded');
  readonly storeSetAside = this.#counter('gateway_store_set_aside_total');
  readonly jobWatchers = this.#gauge('gateway_job_watchers');
  readonly recordWatchers = this.#gauge('gateway_record_watchers');
  readonly connections = this.#gauge('gateway_open_streams', 'transport');
  readonly spansDropped = this.#counter('gateway_trace_spans_dropped_total');
  #budget: { readonly left: number; readonly until: number } | undefined;

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    // Series begin at 0: one that began with its first event would have no increase to alert on.
    for (const code of Object.keys(errorCodes)) this.#errors.touch(code);
    for (const transport of transports) {
      for (const outcome of ['ok', 'failed']) this.#operations.touch('none', transport, outcome);
    }
    this.#tokenEvents.touch('budget-exhausted' satisfies TokenEvent);
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
  onEnd({ facts, transport, outcome, label, way, codes, events }: OperationRecord): void {
    this.#operations.inc(label, transport, outcome);
    for (const [code, count] of codes) this.#errors.add(count, code);
    if (way !== undefined) this.#executions.inc(way);
    if (events === undefined) this.#operationSeconds.observe(label, (performance.now() - facts.startedAt) / 1000);
  }

  onTry = (endpoint: Endpoint, outcome: TryOutcome, seconds: number): void => {
    this.#upstreamCalls.inc(endpoint, outcome);
    this.#upstreamSeconds.observe(endpoint, seconds);
  };

  onDecisionCall = ({ endpoint, outcome, seconds }: DecisionCall): void => {
    this.#decisionCalls.inc(endpoint, outcome);
    this.#decisionSeconds.observe(endpoint, seconds);
  };

  onDecided = (isAllowed: boolean, from: 'asked' | 'remembered'): void =>
    this.#decisions.inc(isAllowed ? 'allowed' : 'denied', from);

  onRead = (kind: string, tier: CacheTier, reason: ReadReason): void => this.#cacheReads.inc(kind, tier, reason);
  onLeaseWait = (kind: string, seconds: number): void => this.#leaseWaitSeconds.observe(kind, seconds);
  onLink = (outcome: string): void => this.#links.inc(outcome);
  onTokenEvent = (event: TokenEvent): void => this.#tokenEvents.inc(event);
  onBudget = (left: number, resetsInMs: number): void => {
    this.#budget = { left, until: performance.now() + resetsInMs };
  };

  /** Shows what is left of a budget; nothing for an unlimited one. */
  showBudget(perHour: number): void {
    this.#tokenBudgetPerHour.set(perHour);
    if (perHour === 0) return;
    this.#collected('gateway_token_budget_left', (gauge) =>
      gauge.set(this.#budget && this.#budget.until > performance.now() ? this.#budget.left : perHour),
    );
  }

  /** Shows how many log lines were dropped so far because nothing read them. */
  showLogLinesDropped(count: () => number): void {
    const collect = function (this: Counter) {
      this.reset();
      this.inc(count());
    };
    new Counter({ ...this.#described('gateway_log_lines_dropped_total'), collect });
  }

  /** Shows whether the breaker of an endpoint refuses calls, of one caller or of all. */
  showBreakers(isOpen: (endpoint: Endpoint) => boolean): void {
    const collect = (gauge: Gauge<'endpoint'>) => {
      for (const endpoint of endpoints) gauge.set({ endpoint }, Number(isOpen(endpoint)));
    };
    this.#collected('gateway_breaker_open', collect, 'endpoint');
  }

  /** Shows the age of the oldest key set held; nothing while none is. Ages are in milliseconds. */
  showKeySets(agesMs: () => readonly (number | undefined)[]): void {
    this.#collected('gateway_key_set_age_seconds', (gauge) => {
      const ages = agesMs().filter((age) => age !== undefined);
      if (ages.length === 0) gauge.reset();
      else gauge.set(Math.max(...ages) / 1000);
    });
  }

  #described<L extends string>(name: Name, ...labelNames: L[]) {
    return { name, help: helps[name], labelNames, registers: [this.registry] };
  }

  #counter<L extends string>(name: Name, ...labelNames: L[]): Counter<L> {
    return new Counter(this.#described(name, ...labelNames));
  }

  #gauge<L extends string>(name: Name, ...labelNames: L[]): Gauge<L> {
    return new Gauge(this.#described(name, ...labelNames));
  }

  /** A gauge that is set when it is read. */
  #collected<L extends string>(name: Name, set: (gauge: Gauge<L>) => void, ...labels: L[]) {
    const collect = function (this: Gauge<L>) {
      set(this);
    };
    new Gauge({ ...this.#described(name, ...labels), collect });
  }

  #hotCounter(name: Name, ...labelNames: string[]): HotCounter {
    return new HotCounter(name, helps[name], labelNames, this.registry);
  }

  #hotHistogram(name: Name, labelName: string): HotHistogram {
    return new HotHistogram(name, helps[name], [labelName], this.registry);
  }
}
