import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Attributes, SpanKind } from '@opentelemetry/api';
import type { DecisionCall } from '../auth/DecisionPoint.js';
import type { Handler } from '../http/HttpServer.js';
import type { OperationRecord } from '../operations/OperationRecord.js';
import { pause } from '../process/pause.js';
import type { Store } from '../stores/Store.js';
import type { Endpoint, TryDetails, TryOutcome } from '../upstream/ResilientFetch.js';
import { epochMs, type RecordedSpan, type SpanBegin } from './RecordedSpan.js';
import {
  callerOf,
  calls,
  describeOperation,
  methodOf,
  requestAttributes,
  type StoreOperation,
  serverOf,
  storeOperations,
} from './spanAttributes.js';
import { openExporter, shareOfNewTraces, startExport, type TraceExportOptions } from './traceExport.js';

export { openExporter };

/** How long the end of the process waits for the collector, in milliseconds. */
const stopMs = 2000;

export interface TracingOptions extends TraceExportOptions {
  /** Where the service is. */
  readonly serviceUrl: string;
}

/** Where new spans are attached. Mutable, because it moves from the HTTP request to its operation and back. */
interface Position {
  /** The span of the request or socket. */
  readonly outer: RecordedSpan;
  /** That, or the span of the operation under way. */
  parent: RecordedSpan;
  /** The operation under way, or the one that goes on as a stream. */
  operation?: RecordedSpan | undefined;
  /** Whether it is in the `AsyncLocalStorage`, where asynchronous work finds it. */
  isEntered: boolean;
  isOver: boolean;
}

interface CallMade {
  readonly attributes: Attributes;
  readonly status?: number | undefined;
  readonly failure: string | undefined;
}

/** The trace of a socket; `run` runs an operation under it. */
export interface SocketTrace {
  run<T>(operation: () => Promise<T>): Promise<T>;
  end(): void;
}

/**
 * Spans of requests, sockets, GraphQL operations, and calls to the service and to the store, named by OpenTelemetry's
 * semantic conventions. Loaded only where a collector is configured; nothing is patched. The spans continue a caller's trace,
 * but the service is never sent its context. Attributes are values of closed sets and numbers only.
 */
export class Tracing {
  readonly #export;
  readonly #share = shareOfNewTraces();
  readonly #service: Attributes;
  readonly #positions = new AsyncLocalStorage<Position>();
  /** How many positions are in the `AsyncLocalStorage`. */
  #entered = 0;
  /** Positions of requests that {@link resume} continues. */
  readonly #resumable = new Map<ServerResponse, Position>();
  /** Position of the synchronous work under way. */
  #current: Position | undefined;

  constructor(options: TracingOptions) {
    this.#export = startExport(options);
    this.#service = serverOf(options.serviceUrl);
  }

  /** The id of the trace of the request under way: for log lines. */
  get traceId(): string | undefined {
    const position = this.#position();
    return position?.parent.spanContext().traceId;
  }

  /**
   * Wraps `handler` in a span, which continues the trace of the caller's `traceparent` if there is one. For requests that
   * `isResumed` selects, only the operation is tracked, from {@link resume} on.
   */
  traced(route: string, handler: Handler, isResumed: (request: IncomingMessage) => boolean = () => false): Handler {
    return (request, response) => {
      const span = this.#beginRequest(request, route);
      if (span === undefined) return handler(request, response);
      response.once('close', () => {
        const { statusCode, headersSent } = response;
        span.attributes['http.response.status_code'] = statusCode;
        // Leaving a stream is no failure; a client that leaves before the answer has begun got none.
        span.end(statusCode >= 500 ? String(statusCode) : headersSent ? undefined : 'disconnected');
      });
      const position = positionIn(span);
      if (!isResumed(request)) return this.#within(position, async () => handler(request, response));
      this.#resumable.set(response, position); // not a WeakMap, which costs the garbage collector time
      return this.#whole(position, async () => handler(request, response)).finally(() =>
        this.#resumable.delete(response),
      );
    };
  }

  /**
   * Runs an operation of a traced request under its span. Node's tracking of asynchronous work costs much in Node.js 20 and 22,
   * so it begins only when the operation waits ({@link onWait}): a synchronous answer from memory does not pay for it. With
   * `mayWait`, when an answer from memory is unlikely, it begins at once.
   */
  resume<T>(response: ServerResponse, mayWait: boolean, work: () => T): T {
    const position = this.#resumable.get(response);
    if (position === undefined) return work();
    this.#current = position;
    if (mayWait) this.onWait();
    try {
      return work();
    } finally {
      this.#current = undefined;
    }
  }

  /** Called when the operation under way is about to wait, so that the work after the wait belongs to it, too. */
  onWait = (): void => {
    const position = this.#current;
    if (position === undefined || position.isEntered) return;
    position.isEntered = true;
    this.#entered += 1;
    this.#positions.enterWith(position);
  };

  /**
   * Traces a socket from its upgrade, answered with `status`, to its end. Its operations are traced under its span; without
   * one, not at all.
   */
  socket = (request: IncomingMessage, route: string, status: number | undefined = 101): SocketTrace => {
    const span = this.#beginRequest(request, route);
    if (span === undefined) return untracedSocket;
    Object.assign(span.attributes, { 'network.protocol.name': 'websocket', 'http.response.status_code': status });
    return { run: (operation) => this.#within(positionIn(span), operation), end: () => span.end() };
  };

  /** Begins the span of an operation, the parent of all its work. {@link onEnd} ends it. */
  onBegin = (): void => {
    const position = this.#position();
    if (position !== undefined) this.#beginOperation(position);
  };

  /** Ends the span of an operation, or makes that of a request which was refused before it began. */
  onEnd({ label, type, outcome, codes }: OperationRecord): void {
    const position = this.#position();
    if (position === undefined) return;
    const span = position.operation ?? this.#beginOperation(position);
    if (type !== 'none') span.name = type;
    let errors = 0;
    for (const [code, count] of codes) {
      errors += count;
      span.attributes['error.type'] = code;
    }
    describeOperation(span.attributes, label, type, errors);
    span.attributes['gateway.outcome'] = outcome;
    if (outcome !== 'ok') span.fail();
    position.parent = position.outer;
    position.operation = undefined;
    span.end();
  }

  #beginOperation(position: Position): RecordedSpan {
    const begun = { name: 'GraphQL Operation', kind: SpanKind.SERVER, attributes: {} };
    const span = this.#beginBelow(position.outer, begun);
    position.operation = span;
    position.parent = span;
    return span;
  }

  /** After a try of a call to the service. */
  onTry = (endpoint: Endpoint, outcome: TryOutcome, seconds: number, details: TryDetails): void => {
    const { status, reason, repetition } = details;
    const attributes = {
      ...this.#service,
      ...{ 'gateway.endpoint': endpoint, 'gateway.outcome': outcome },
      ...(repetition > 0 && { 'http.request.resend_count': repetition }),
    };
    const failure = outcome === 'ok' ? undefined : (reason ?? outcome);
    this.#called(calls[endpoint], epochMs() - seconds * 1000, { attributes, status, failure });
  };

  /** After a call to the decision point at `url`. */
  onDecisionCall = (url: string, { endpoint, outcome, seconds }: DecisionCall): void => {
    const attributes = { ...serverOf(url), 'gateway.outcome': outcome };
    const failure = outcome === 'ok' ? undefined : outcome;
    this.#called(['POST', `/access/v1/${endpoint}`], epochMs() - seconds * 1000, { attributes, failure });
  };

  /** Records the span of a finished call, if it was made within a trace. `failure` counts unless the status is an error. */
  #called([method, template]: readonly [method: string, template: string], startMs: number, call: CallMade): void {
    const parent = this.#position()?.parent;
    if (parent === undefined) return;
    const { status, failure } = call;
    const attributes = {
      ...call.attributes,
      'http.request.method': method,
      'url.template': template,
      ...(status !== undefined && { 'http.response.status_code': status }),
    };
    const name = `${method} ${template}`;
    const span = this.#beginBelow(parent, { name, kind: SpanKind.CLIENT, attributes, startMs });
    span.end(status !== undefined && status >= 400 ? String(status) : failure);
  }

  /** Wraps `store` with a span for each operation, without keys and values. */
  store(store: Store): Store {
    const names = Object.keys(storeOperations) as StoreOperation[];
    const traced = names.map((operation) => [operation, this.#tracedOperation(store, operation)]);
    return { kind: store.kind, close: () => store.close(), ...Object.fromEntries(traced) };
  }

  #tracedOperation(store: Store, operation: StoreOperation) {
    const name = `${operation} ${store.kind}`;
    const attributes = { 'db.system.name': store.kind, 'db.operation.name': operation };
    return async (...args: unknown[]) => {
      const parent = this.#position()?.parent;
      const work = () => (store[operation] as (...args: unknown[]) => Promise<unknown>).apply(store, args);
      if (parent === undefined) return work();
      const span = this.#beginBelow(parent, { name, kind: SpanKind.CLIENT, attributes: { ...attributes } });
      try {
        const result = await work();
        span.end();
        return result;
      } catch (error) {
        span.end(String((error as { readonly trouble?: unknown }).trouble ?? 'failed'));
        throw error;
      }
    };
  }

  /** Sends the remaining spans, within a time limit. */
  async stop(): Promise<void> {
    await Promise.race([this.#export.stop().catch(() => {}), pause(stopMs, { ref: false })]);
  }

  /** Runs `work` in `position`, its asynchronous parts included. */
  #within<T>(position: Position, work: () => Promise<T>): Promise<T> {
    position.isEntered = true;
    this.#entered += 1;
    return this.#whole(position, () => this.#positions.run(position, work));
  }

  /** Runs all the work of `position` and then closes it; the span of a stream that has not ended ends with it. */
  async #whole<T>(position: Position, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      position.isOver = true;
      position.operation?.end();
      if (position.isEntered) this.#entered -= 1;
      // While an `AsyncLocalStorage` is in use, Node.js 20 and 22 track every promise, which costs each request a third.
      if (position.isEntered && this.#entered === 0) this.#positions.disable();
    }
  }

  /** The position of the work under way; undefined for work that goes on after its request has ended. */
  #position(): Position | undefined {
    const position = this.#current ?? this.#positions.getStore();
    return position?.isOver ? undefined : position;
  }

  /** Undefined for a new trace that is not recorded. A caller's trace gets a span even then, for the trace id in the log. */
  #beginRequest(request: IncomingMessage, route: string): RecordedSpan | undefined {
    const caller = callerOf(request);
    if (caller === undefined && Math.random() >= this.#share) return undefined;
    const name = `${methodOf(request) ?? 'HTTP'} ${route}`;
    const attributes = requestAttributes(request, route);
    const span = { name, kind: SpanKind.SERVER, attributes };
    return caller === undefined ? this.#export.begin(span) : this.#export.continued(span, caller);
  }

  /** Begins `span` below `parent`; returns `parent` itself if that is not recorded. */
  #beginBelow(parent: RecordedSpan, span: SpanBegin): RecordedSpan {
    return parent.isRecorded ? this.#export.begin(span, parent.spanContext()) : parent;
  }
}

function positionIn(span: RecordedSpan): Position {
  return { outer: span, parent: span, operation: undefined, isEntered: false, isOver: false };
}

const untracedSocket: SocketTrace = { run: (operation) => operation(), end: () => {} };
