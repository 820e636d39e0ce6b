import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Attributes, Context, Span } from '@opentelemetry/api';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import type { ErrorCode } from '../errors/errors.js';
import type { Handler } from '../http/HttpServer.js';
import type { EndOfOperation, OperationObserver } from '../operations/observeOperations.js';
import type { Store } from '../stores/Store.js';
import type { Endpoint, TryDetails, TryOutcome } from '../upstream/ResilientFetch.js';
import { type TraceExportOptions, tracerProvider } from './traceExport.js';

const operations = [
  ...(['get', 'set', 'claim', 'acquire', 'renew', 'settle', 'list'] as const),
  ...(['compareAndDelete', 'increment', 'waitForDelete'] as const),
];

/** How long the end of the process waits for the collector, in milliseconds. */
const stopMs = 5000;

const knownMethods = new Set('GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH QUERY'.split(' '));

/** What is called at the service, with placeholders where ids stand (interface, part 4). */
const calls: Readonly<Record<Endpoint, readonly [method: string, template: string]>> = {
  createClientLink: ['POST', '/client-links'],
  taxpayerToken: ['GET', '/auth/tax-payer/{id}/token'],
  refreshJob: ['GET', '/tax-payer/{taxpayerId}/refresh/{jobId}'],
};

export interface TracingOptions extends TraceExportOptions {
  /** Where the service is. */
  readonly serviceUrl: string;
}

/** What spans are begun under now. It moves from the HTTP request to its operation and back, so it is a box. */
interface Position {
  parent: Context;
  /** The operation under way, or the one that goes on as a stream. */
  operation?: Span;
  isOver: boolean;
}

/** A socket that is traced: its operations are run in it. */
export interface SocketTrace {
  run<T>(operation: () => Promise<T>): Promise<T>;
  end(): void;
}

/**
 * Spans of requests, sockets, GraphQL operations, callbacks, and calls to the service and to the store, named by OpenTelemetry's
 * semantic conventions; loaded only where a collector is configured, and nothing is patched. The context of a caller is
 * continued as far as the collector; the service never sees it. Attributes are values of closed sets and numbers only.
 */
export class Tracing {
  readonly #provider;
  readonly #tracer;
  readonly #service: Attributes;
  readonly #position = new AsyncLocalStorage<Position>();

  constructor(options: TracingOptions) {
    this.#provider = tracerProvider(options);
    this.#tracer = this.#provider.getTracer('taxpayer-gateway', options.version);
    this.#service = serverOf(options.serviceUrl);
  }

  /** The id of the trace of the request under way: for log lines. */
  get traceId(): string | undefined {
    const position = this.#position.getStore();
    return position && trace.getSpanContext(position.parent)?.traceId;
  }

  /** The same, if the trace is recorded: for exemplars, which must lead somewhere. */
  get recordedTraceId(): string | undefined {
    const position = this.#position.getStore();
    const context = position && trace.getSpanContext(position.parent);
    return context && (context.traceFlags & 1) === 1 ? context.traceId : undefined;
  }

  /** `handler` under a span of its own, begun by the caller's `traceparent` if there is one. */
  traced(route: string, handler: Handler): Handler {
    return (request, response) => {
      const caller = callerOf(request);
      const span = this.#beginRequest(request, route, caller);
      if (!span.isRecording() && caller === ROOT_CONTEXT) return handler(request, response);
      response.once('close', () => {
        const { statusCode, headersSent } = response;
        span.setAttribute('http.response.status_code', statusCode);
        // A client may leave a stream; who leaves before the answer has begun got none.
        end(span, statusCode >= 500 ? String(statusCode) : headersSent ? undefined : 'disconnected');
      });
      return this.#within(span, async () => handler(request, response));
    };
  }

  /** A socket from its upgrade to its end. Its operations are traced below it, or not at all. */
  socket = (request: IncomingMessage, route: string): SocketTrace => {
    const span = this.#beginRequest(request, route, callerOf(request));
    span.setAttributes({ 'network.protocol.name': 'websocket', 'http.response.status_code': 101 });
    const isTraced = span.isRecording() || callerOf(request) !== ROOT_CONTEXT;
    return {
      run: (operation) => (isTraced ? this.#within(span, operation) : operation()),
      end: () => end(span),
    };
  };

  /** A span for each operation; what the operation does is under it. That of a subscription lasts as long as its stream. */
  observeOperation: OperationObserver = () => {
    const position = this.#position.getStore();
    if (position === undefined) return untraced;
    const outer = position.parent;
    const span = this.#begin('GraphQL Operation', SpanKind.SERVER, outer);
    position.operation = span;
    position.parent = trace.setSpan(outer, span);
    return (label, type, errors) => {
      if (type !== 'none') span.updateName(type).setAttribute('graphql.operation.type', type);
      span.setAttributes({ 'gateway.operation': label, 'gateway.errors': errors });
      if (errors > 0) span.setStatus({ code: SpanStatusCode.ERROR });
      if (type === 'subscription' && errors === 0 && !position.isOver) return;
      position.parent = outer;
      delete position.operation;
      end(span);
    };
  };

  /** An error in an answer of the operation under way. */
  onError = (code: ErrorCode): void => {
    this.#position.getStore()?.operation?.setAttribute('error.type', code);
  };

  /** After a try of a call to the service: its span, if anything that is traced waits for it. */
  onTry = (endpoint: Endpoint, outcome: TryOutcome, seconds: number, details: TryDetails): void => {
    const parent = this.#position.getStore()?.parent;
    if (parent === undefined) return;
    const [method, template] = calls[endpoint];
    const { status, reason, repetition } = details;
    const attributes = {
      ...this.#service,
      ...{ 'http.request.method': method, 'url.template': template },
      ...{ 'gateway.endpoint': endpoint, 'gateway.outcome': outcome },
      ...(status !== undefined && { 'http.response.status_code': status }),
      ...(repetition > 0 && { 'http.request.resend_count': repetition }),
    };
    const span = this.#begin(`${method} ${template}`, SpanKind.CLIENT, parent, attributes, now() - seconds * 1000);
    end(
      span,
      outcome === 'ok' ? undefined : status !== undefined && status >= 400 ? String(status) : (reason ?? outcome),
    );
  };

  /** After a post of a callback subscription to `url`; `status` is undefined when no answer came. */
  onCallback = (url: string, startedAt: number, status: number | undefined): void => {
    const parent = this.#position.getStore()?.parent;
    if (parent === undefined) return;
    const attributes = {
      ...serverOf(url),
      'http.request.method': 'POST',
      ...(status !== undefined && { 'http.response.status_code': status }),
    };
    const startTime = performance.timeOrigin + startedAt;
    const failure = status === undefined ? 'no answer' : status >= 400 ? String(status) : undefined;
    end(this.#begin('POST', SpanKind.CLIENT, parent, attributes, startTime), failure);
  };

  /** `store` with a span for each operation; keys and values are not told. It reads nothing at once, so that reads are seen. */
  store(store: Store): Store {
    const traced = operations.map((operation) => [operation, this.#tracedOperation(store, operation)]);
    return { kind: store.kind, close: () => store.close(), ...Object.fromEntries(traced) };
  }

  #tracedOperation(store: Store, operation: (typeof operations)[number]) {
    const attributes = { 'db.system.name': store.kind, 'db.operation.name': operation };
    return async (...args: unknown[]) => {
      const parent = this.#position.getStore()?.parent;
      const work = () => (store[operation] as (...args: unknown[]) => Promise<unknown>).apply(store, args);
      if (parent === undefined) return work();
      const span = this.#begin(`${operation} ${store.kind}`, SpanKind.CLIENT, parent, attributes);
      try {
        const result = await work();
        end(span);
        return result;
      } catch (error) {
        end(span, String((error as { readonly trouble?: unknown }).trouble ?? 'failed'));
        throw error;
      }
    };
  }

  /** Sends the remaining spans, within a time limit. */
  async stop(): Promise<void> {
    await Promise.race([this.#provider.shutdown().catch(() => {}), delay(stopMs, undefined, { ref: false })]);
  }

  /** Runs `work` below `span`. A stream that it began and that has not ended ends with it. */
  async #within<T>(span: Span, work: () => Promise<T>): Promise<T> {
    const position: Position = { parent: trace.setSpan(ROOT_CONTEXT, span), isOver: false };
    try {
      return await this.#position.run(position, work);
    } finally {
      position.isOver = true;
      if (position.operation) end(position.operation);
    }
  }

  #beginRequest({ method = '', httpVersion, socket }: IncomingMessage, route: string, caller: Context): Span {
    const isKnown = knownMethods.has(method);
    return this.#begin(`${isKnown ? method : 'HTTP'} ${route}`, SpanKind.SERVER, caller, {
      'http.request.method': isKnown ? method : '_OTHER',
      'http.route': route,
      'url.path': route,
      'url.scheme': 'encrypted' in socket ? 'https' : 'http',
      'network.protocol.version': httpVersion,
    });
  }

  #begin(name: string, kind: SpanKind, parent: Context, attributes: Attributes = {}, startTime = now()): Span {
    return this.#tracer.startSpan(name, { kind, attributes, startTime }, parent);
  }
}

const untraced: EndOfOperation = () => {};

/** What a `traceparent` header says (W3C Trace Context, section 3.2); a new trace when there is none that can be used. */
function callerOf({ headers }: IncomingMessage): Context {
  const header = headers['traceparent'];
  const caller = typeof header === 'string' ? parseTraceParent(header) : null;
  return caller === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...caller, isRemote: true });
}

function serverOf(url: string): Attributes {
  const { hostname, port, protocol } = new URL(url);
  return { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'https:' ? 443 : 80) };
}

/** `failure`: what went wrong, of a small set. */
function end(span: Span, failure?: string): void {
  if (failure !== undefined) span.setAttribute('error.type', failure).setStatus({ code: SpanStatusCode.ERROR });
  span.end(now());
}

/** Epoch milliseconds with the resolution of the monotonic clock. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
