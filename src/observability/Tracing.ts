import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { Attributes, Context, Span } from '@opentelemetry/api';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { ExportResultCode, getNumberFromEnv, parseTraceParent } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import type { Handler } from '../http/HttpServer.js';
import type { OperationObserver } from '../operations/observeOperations.js';
import type { Store } from '../stores/Store.js';
import type { Endpoint, TryOutcome } from '../upstream/ResilientFetch.js';

const operations = [
  ...(['get', 'set', 'claim', 'acquire', 'renew', 'settle', 'list'] as const),
  ...(['compareAndDelete', 'increment', 'waitForDelete'] as const),
];

/** A collector that is down costs this many spans of memory and no more. */
const maxWaiting = 4096;
/** How long the end of the process waits for the collector, in milliseconds. */
const stopMs = 5000;

export interface TraceExportOptions {
  /** Base address of the collector: spans are posted to its `/v1/traces`. */
  readonly endpoint: string;
  readonly version: string;
  /** Spans that were given up: too many waited or the collector did not take them. */
  readonly onDropped: (count: number) => void;
}

/** What spans are begun under now. It moves from the HTTP request to its operation and back, so it is a box. */
interface Position {
  parent: Context;
}

/**
 * Spans of HTTP requests, GraphQL operations, calls to the service and to the store; loaded only where an endpoint is
 * configured, and nothing is patched. The context of a caller is continued as far as the collector; the service never sees
 * it. Attributes are values of closed sets and numbers only.
 */
export class Tracing {
  readonly #provider;
  readonly #tracer;
  readonly #position = new AsyncLocalStorage<Position>();

  constructor(options: TraceExportOptions) {
    this.#provider = tracerProvider(options);
    this.#tracer = this.#provider.getTracer('taxpayer-gateway', options.version);
  }

  /** `handler` under a span of its own, begun by the caller's `traceparent` if there is one. */
  traced(route: string, handler: Handler): Handler {
    return async (request, response) => {
      const method = request.method === 'GET' || request.method === 'POST' ? request.method : 'other';
      const span = this.#begin(`${method} ${route}`, SpanKind.SERVER, callerOf(request.headers.traceparent), {
        'http.request.method': method,
        'http.route': route,
      });
      response.once('close', () => {
        span.setAttribute('http.response.status_code', response.statusCode);
        end(span, response.statusCode >= 500 || !response.writableFinished);
      });
      await this.#position.run({ parent: trace.setSpan(ROOT_CONTEXT, span) }, () => handler(request, response));
    };
  }

  /** A span for each operation; what the operation does is under it. */
  observeOperation: OperationObserver = () => {
    const position = this.#position.getStore();
    if (position === undefined) return () => {};
    const outer = position.parent;
    const span = this.#begin('graphql', SpanKind.INTERNAL, outer);
    position.parent = trace.setSpan(outer, span);
    return (label, type, errors) => {
      position.parent = outer;
      span.updateName(`graphql ${label}`).setAttributes({ 'graphql.operation.type': type, 'gateway.errors': errors });
      end(span, errors > 0);
    };
  };

  /** After a try of a call to the service: its span, if anything that is traced waits for it. */
  onTry = (endpoint: Endpoint, outcome: TryOutcome, seconds: number): void => {
    const attributes = { 'gateway.endpoint': endpoint, 'gateway.outcome': outcome };
    const failed = outcome !== 'ok' && outcome !== 'client-error';
    this.#note(`service ${endpoint}`, attributes, now() - seconds * 1000, failed);
  };

  /** `store` with a span for each operation; keys and values are not told. It reads nothing at once, so that reads are seen. */
  store(store: Store): Store {
    const traced = operations.map((operation) => [operation, this.#tracedOperation(store, operation)]);
    return { kind: store.kind, close: () => store.close(), ...Object.fromEntries(traced) };
  }

  #tracedOperation(store: Store, operation: (typeof operations)[number]) {
    const attributes = { 'db.system.name': store.kind, 'db.operation.name': operation };
    return async (...args: unknown[]) => {
      const startTime = now();
      let failed = true;
      try {
        const result = await (store[operation] as (...args: unknown[]) => Promise<unknown>).apply(store, args);
        failed = false;
        return result;
      } finally {
        this.#note(`store ${operation}`, attributes, startTime, failed);
      }
    };
  }

  /** The id of the trace under way, for log lines. */
  get traceId(): string | undefined {
    const parent = this.#position.getStore()?.parent;
    return parent && trace.getSpanContext(parent)?.traceId;
  }

  /** Sends the remaining spans, within a time limit. */
  async stop(): Promise<void> {
    await Promise.race([this.#provider.shutdown().catch(() => {}), delay(stopMs, undefined, { ref: false })]);
  }

  #begin(name: string, kind: SpanKind, parent: Context, attributes: Attributes = {}, startTime = now()): Span {
    return this.#tracer.startSpan(name, { kind, attributes, startTime }, parent);
  }

  /** A span that is over, under what is traced now. */
  #note(name: string, attributes: Attributes, startTime: number, failed: boolean): void {
    const parent = this.#position.getStore()?.parent;
    if (parent !== undefined) end(this.#begin(name, SpanKind.CLIENT, parent, attributes, startTime), failed);
  }
}

/** What a `traceparent` header says (W3C Trace Context, section 3.2); a new trace when there is none that can be used. */
function callerOf(header: string | string[] | undefined): Context {
  const caller = typeof header === 'string' ? parseTraceParent(header) : null;
  return caller === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...caller, isRemote: true });
}

function end(span: Span, failed: boolean): void {
  if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(now());
}

/** Epoch milliseconds with the resolution of the monotonic clock. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

/** Sends spans in batches as OTLP over HTTP. Headers, compression, retries, sampler and resource are set by `OTEL_*` variables. */
export function tracerProvider(options: TraceExportOptions): BasicTracerProvider {
  const own = { 'service.name': 'taxpayer-gateway', 'service.version': options.version, 'process.pid': process.pid };
  return new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(own))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [boundedProcessor(options)],
  });
}

/** A batch processor that counts the spans that wait or are on their way, and reports each dropped one. */
function boundedProcessor({ endpoint, onDropped }: TraceExportOptions): SpanProcessor {
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` });
  let waiting = 0;
  const counting: SpanExporter = {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        waiting -= spans.length;
        if (result.code !== ExportResultCode.SUCCESS) onDropped(spans.length);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
  const scheduledDelayMillis = getNumberFromEnv('OTEL_BSP_SCHEDULE_DELAY') ?? 1000;
  const batches = new BatchSpanProcessor(counting, { maxQueueSize: maxWaiting, scheduledDelayMillis });
  return {
    onStart: () => {},
    onEnd: (span) => {
      if (waiting >= maxWaiting) return onDropped(1);
      waiting += 1;
      batches.onEnd(span);
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  };
}
