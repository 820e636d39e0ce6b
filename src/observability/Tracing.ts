import type { IncomingMessage } from 'node:http';
import {
  type Attributes,
  type Context,
  defaultTextMapGetter,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { ExportResultCode, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base';
import { packageVersion } from '../config/config.js';
import type { OperationRecord } from '../operations/Operation.js';
import { inTime } from '../process/pause.js';
import { codeOf } from '../process/systemErrors.js';
import type { CallMade } from '../process/Trail.js';
import type { Surroundings } from '../services.js';
import { episodes, type Report } from './episodes.js';

/** How long the end of the process waits for the collector, in milliseconds. */
const stopMs = 2000;

/**
 * Makes the spans of an operation and of the calls made for it, from its record, when it has ended. They continue the caller's
 * trace, whose context is never sent to the service. Names and attributes are numbers, values of closed sets, and hosts of
 * settings; no URL, which holds ids. Loaded only if a collector is configured; the SDK reads the other `OTEL_` variables.
 */
export class Tracing {
  readonly #provider;
  readonly #tracer;

  /** Spans are posted to `url`. */
  constructor({ log, agents }: Surroundings, url: string) {
    const agent = agents.others.agentFor(new URL(url));
    const exporter = new OTLPTraceExporter({ url, httpAgentOptions: () => agent });
    const report = episodes({
      log,
      begins: 'trace collector rejects spans',
      ends: 'trace collector accepts spans again',
    });
    reportBatches(exporter, report);
    const version = packageVersion();
    const own = { 'service.name': 'taxpayer-gateway', 'service.version': version, 'process.pid': process.pid };
    const resource = defaultResource()
      .merge(resourceFromAttributes(own))
      .merge(detectResources({ detectors: [envDetector] }));
    this.#provider = new BasicTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(exporter)] });
    this.#tracer = this.#provider.getTracer('taxpayer-gateway', version);
  }

  /** Makes the spans of an operation that has ended. Returns the id of its trace. */
  onEnd({ facts, transport, label, type, outcome, status, codes, context }: OperationRecord): string {
    const { request, startedAt } = facts;
    const attributes: Attributes = {
      // An operation on a socket is no HTTP request.
      ...(transport !== 'ws' && httpOf(request)),
      'http.response.status_code': status,
      'graphql.operation.type': type === 'none' ? undefined : type,
      'gateway.operation': label,
      'gateway.transport': transport,
      'gateway.outcome': outcome,
      'gateway.codes': codes.size > 0 ? [...codes.keys()] : undefined,
      // Mistakes of callers are no errors of this service.
      'error.type': outcome === 'failed' ? [...codes.keys()].join() : undefined,
    };
    const name = type === 'none' ? 'refused request' : `${type} ${label}`;
    const begin = { kind: SpanKind.SERVER, startTime: startedAt, attributes };
    const span = this.#tracer.startSpan(name, begin, callerContext(request));
    if (outcome === 'failed') span.setStatus({ code: SpanStatusCode.ERROR });
    for (const call of context?.trail.calls ?? []) this.#addCall(call, trace.setSpan(ROOT_CONTEXT, span));
    span.end(performance.now());
    return span.spanContext().traceId;
  }

  #addCall({ endpoint, method, server, outcome, startedAt, ms, status, reason }: CallMade, parent: Context): void {
    const cause = status !== undefined && status >= 400 ? String(status) : (reason ?? outcome);
    const failure = outcome === 'ok' ? undefined : cause;
    const { hostname, port, protocol } = new URL(server);
    const attributes: Attributes = {
      'http.request.method': method,
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
      'peer.service': endpoint.startsWith('evaluation') ? 'decision-point' : 'taxpayer-service',
      'http.response.status_code': status,
      'error.type': failure,
      'gateway.outcome': outcome,
    };
    const span = this.#tracer.startSpan(endpoint, { kind: SpanKind.CLIENT, startTime: startedAt, attributes }, parent);
    if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(startedAt + ms);
  }

  /** Sends the remaining spans, within a time limit. */
  async stop(): Promise<void> {
    await inTime(stopMs, this.#provider.shutdown(), () => new Error('late')).catch(() => {});
  }
}

/** What the conventions require of an HTTP request. Only our own paths have spans. */
function httpOf({ method, url, socket }: IncomingMessage): Attributes {
  return {
    'http.request.method': method,
    'url.path': url?.replace(/\?.*/, ''),
    'url.scheme': 'encrypted' in socket ? 'https' : 'http',
  };
}

const traceContext = new W3CTraceContextPropagator();

/** The caller's trace; the root when there is none that can be used. Not its `tracestate`: a text that the caller chose. */
function callerContext({ headers: { traceparent } }: IncomingMessage): Context {
  return traceContext.extract(ROOT_CONTEXT, { traceparent }, defaultTextMapGetter);
}

/** Reports what became of each batch. */
function reportBatches(exporter: SpanExporter, report: Report): void {
  const send = exporter.export.bind(exporter);
  exporter.export = (spans, done) =>
    send(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) report(undefined);
      else report('not sent', causeOf(result.error));
      done(result);
    });
}

/** The status of an answer, or the code of a connection error; never a message, which may hold an address with a password. */
function causeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: string };
  if (typeof code === 'number') return `HTTP ${code}`;
  // Of the statuses after which it tries again, the SDK does not say which it was.
  return name === 'OTLPExporterError' ? 'HTTP 429, 502, 503 or 504' : (codeOf(error) ?? 'no answer in time');
}
