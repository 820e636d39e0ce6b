import type { Agent } from 'node:http';
import { type Context, DiagLogLevel, diag, type SpanContext, TraceFlags, trace } from '@opentelemetry/api';
import { ExportResultCode, getNumberFromEnv, getStringFromEnv } from '@opentelemetry/core';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  RandomIdGenerator,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';

import type { Config } from '../config/config.js';
import { RecordedSpan, type SpanBegin, type SpanOrigin } from './RecordedSpan.js';

/** Most spans held in memory, as when the collector is down. */
const maxWaiting = 4096;

export interface TraceExportOptions {
  readonly exporter: SpanExporter;
  readonly version: string;
  /** Spans that were given up: too many waited, or the collector did not take them for the `cause` named. */
  readonly onDropped: (count: number, cause: string) => void;
  /** The collector took a batch. */
  readonly onSent?: () => void;
}

/** Creates what writes spans as OTLP and posts them. Only the exporter for `protocol` is loaded. */
export async function openExporter(
  { url, protocol }: Pick<NonNullable<Config['traces']>, 'url' | 'protocol'>,
  agent?: Agent,
): Promise<SpanExporter> {
  // Through files of ours: in the bundle, a dynamic import of a CommonJS package would have no named exports.
  const { OTLPTraceExporter } = await (protocol === 'http/json'
    ? import('./otlpJson.js')
    : import('./otlpProtobuf.js'));
  return new OTLPTraceExporter({ url, ...(agent && { httpAgentOptions: () => agent }) });
}

/** Sends spans in batches. Headers, compression, retries, sampler and resource are set by `OTEL_*` variables. */
export function startExport(options: TraceExportOptions) {
  const own = { 'service.name': 'taxpayer-gateway', 'service.version': options.version, 'process.pid': process.pid };
  const resource = defaultResource()
    .merge(resourceFromAttributes(own))
    .merge(detectResources({ detectors: [envDetector] }));
  const instrumentationScope = { name: 'taxpayer-gateway', version: options.version };
  const processor = boundedProcessor(options);
  tellRejected(options.onDropped);
  const origin: SpanOrigin = { resource, instrumentationScope, onEnd: (span) => processor.onEnd(span) };
  const sampler = new BasicTracerProvider().getTracer('taxpayer-gateway');
  const ids = new RandomIdGenerator();
  return {
    /** A span that is recorded: below `parent`, or the first of a new trace. */
    begin: (span: SpanBegin, parent?: SpanContext): RecordedSpan => {
      const traceId = parent === undefined ? ids.generateTraceId() : parent.traceId;
      const context = { traceId, spanId: ids.generateSpanId(), traceFlags: TraceFlags.SAMPLED };
      return new RecordedSpan(origin, span, context, parent);
    },
    /** The first span here of a caller's trace; the sampler decides whether it is recorded. */
    continued: (span: SpanBegin, caller: Context): RecordedSpan => {
      const { name, kind, attributes } = span;
      const context = sampler.startSpan(name, { kind, attributes }, caller).spanContext();
      return new RecordedSpan(origin, span, context, trace.getSpanContext(caller));
    },
    /** Sends what remains. */
    stop: () => processor.shutdown().finally(() => diag.disable()),
  };
}

/**
 * The share of new traces that are recorded: what OTEL_TRACES_SAMPLER means for a request without a caller's trace. We draw
 * the random number ourselves, because asking the SDK costs most requests more than the rest of tracing.
 */
export function shareOfNewTraces(): number {
  const sampler = (getStringFromEnv('OTEL_TRACES_SAMPLER') ?? '').replace('parentbased_', '');
  if (sampler === 'always_off') return 0;
  const share = sampler === 'traceidratio' ? (getNumberFromEnv('OTEL_TRACES_SAMPLER_ARG') ?? 1) : 1;
  return share >= 0 && share <= 1 ? share : 1;
}

/** Spans that a collector rejects in a batch that it takes: the SDK tells that only its diagnostic log, one for the process. */
function tellRejected(onDropped: TraceExportOptions['onDropped']): void {
  const nothing = () => {};
  const warn = (message: string, answer: unknown) => {
    if (!message.startsWith('Received Partial Success')) return;
    const { rejectedSpans } = JSON.parse(String(answer)) as { readonly rejectedSpans?: unknown };
    const count = Number(rejectedSpans ?? 0);
    if (Number.isSafeInteger(count) && count > 0) onDropped(count, 'the collector rejected a part');
  };
  const logger = { error: nothing, warn, info: nothing, debug: nothing, verbose: nothing };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** Undefined when the variable is unset, wrong or below `least`; the configuration warns of it. */
function numberFromEnv(name: string, least: number): number | undefined {
  const number = getNumberFromEnv(name) ?? Number.NaN;
  return number >= least ? number : undefined;
}

/** A batch processor that counts the spans that wait or are on their way, and reports each dropped one. */
function boundedProcessor({ exporter, onDropped, onSent }: TraceExportOptions): SpanProcessor {
  let waiting = 0;
  const counting: SpanExporter = {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        waiting -= spans.length;
        if (result.code === ExportResultCode.SUCCESS) onSent?.();
        else onDropped(spans.length, causeOf(result.error));
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor(counting, {
    maxQueueSize: maxWaiting,
    scheduledDelayMillis: numberFromEnv('OTEL_BSP_SCHEDULE_DELAY', 0) ?? 1000,
    // With none or less, the SDK would send empty batches without end.
    maxExportBatchSize: numberFromEnv('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 1) ?? 512,
  });
  return {
    onStart: () => {},
    onEnd: (span) => {
      if (waiting >= maxWaiting) return onDropped(1, 'too many wait for the collector');
      waiting += 1;
      batches.onEnd(span);
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  };
}

/** The status of an answer, or the code of a connection error; never a message, which may hold an address with a password. */
function causeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  if (typeof code === 'number') return `HTTP ${code}`;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? code : 'no answer in time';
}
