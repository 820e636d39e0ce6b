import { AsyncLocalStorage } from 'node:async_hooks';
import type { Store } from '../../cache/stores/Store.js';
import type { Handler } from '../../http/HttpServer.js';
import type { OperationObserver } from '../../operations/observeOperations.js';
import type { Endpoint, TryOutcome } from '../../upstream/ResilientFetch.js';
import { OtlpExporter, type OtlpExporterOptions } from './OtlpExporter.js';
import { newSpanId, newTraceId, preciseNow, readTraceparent, type Span, type TraceParent } from './Span.js';
import { TracedStore } from './TracedStore.js';

type SpanFacts = Pick<Span, 'name' | 'kind' | 'startedAt' | 'attributes' | 'failed'>;

/** What spans are begun under now. It moves from the HTTP request to its operation and back, so it is a box. */
interface Position {
  parent: TraceParent;
}

/**
 * Spans of HTTP requests, GraphQL operations, calls to the service and to the store. Nothing is patched: the server puts
 * these hooks in its path when an endpoint is configured, and otherwise this module is not even loaded. The context of a
 * caller is continued and goes no further than the collector; the service never sees it.
 */
export class Tracing {
  readonly #exporter: OtlpExporter;
  readonly #position = new AsyncLocalStorage<Position>();

  constructor(options: OtlpExporterOptions) {
    this.#exporter = new OtlpExporter(options);
  }

  /** `handler` under a span of its own, begun by the caller's `traceparent` if there is one. */
  traced(route: string, handler: Handler): Handler {
    return async (request, response) => {
      const caller = readTraceparent(request.headers.traceparent);
      if (caller === 'unsampled') return handler(request, response);
      const span = { traceId: caller?.traceId ?? newTraceId(), spanId: newSpanId() };
      const startedAt = preciseNow();
      response.once('close', () => {
        const method = request.method === 'GET' || request.method === 'POST' ? request.method : 'other';
        this.#exporter.add({
          ...span,
          parentId: caller?.spanId,
          name: `${method} ${route}`,
          kind: 'server',
          startedAt,
          endedAt: preciseNow(),
          attributes: {
            'http.request.method': method,
            'http.route': route,
            'http.response.status_code': response.statusCode,
          },
          failed: response.statusCode >= 500 || !response.writableFinished,
        });
      });
      await this.#position.run({ parent: span }, () => handler(request, response));
    };
  }

  /** A span for each operation; what the operation does is under it. */
  observeOperation: OperationObserver = () => {
    const position = this.#position.getStore();
    if (position === undefined) return () => {};
    const outer = position.parent;
    const span = { traceId: outer.traceId, spanId: newSpanId() };
    const startedAt = preciseNow();
    position.parent = span;
    return (label, type, errors) => {
      position.parent = outer;
      this.#exporter.add({
        ...span,
        parentId: outer.spanId,
        name: `graphql ${label}`,
        kind: 'internal',
        startedAt,
        endedAt: preciseNow(),
        attributes: { 'graphql.operation.type': type, 'gateway.errors': errors },
        failed: errors > 0,
      });
    };
  };

  /** After a try of a call to the service: its span, if anything that is traced waits for it. */
  onTry = (endpoint: Endpoint, outcome: TryOutcome, seconds: number): void => {
    this.#note({
      name: `service ${endpoint}`,
      kind: 'client',
      startedAt: preciseNow() - seconds * 1000,
      attributes: { 'gateway.endpoint': endpoint, 'gateway.outcome': outcome },
      failed: outcome !== 'ok' && outcome !== 'client-error',
    });
  };

  /** `store` with a span for each operation. */
  store(store: Store): Store {
    return new TracedStore(store, (operation, startedAt, failed) => {
      this.#note({
        name: `store ${operation}`,
        kind: 'client',
        startedAt,
        attributes: { 'db.system.name': store.kind, 'db.operation.name': operation },
        failed,
      });
    });
  }

  /** Sends what is left. */
  stop(): Promise<void> {
    return this.#exporter.stop();
  }

  #note(facts: SpanFacts): void {
    const parent = this.#position.getStore()?.parent;
    if (parent === undefined) return;
    const { traceId, spanId: parentId } = parent;
    this.#exporter.add({ ...facts, traceId, spanId: newSpanId(), parentId, endedAt: preciseNow() });
  }
}
