import { ExportResultCode, getNumberFromEnv } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, type SpanProcessor } from '@opentelemetry/sdk-trace-base';

export interface TraceExportOptions {
  /** Base address of the collector: spans are posted to its `/v1/traces`. */
  readonly endpoint: string;
  readonly version: string;
  /** Spans that were given up: too many waited or the collector did not take them. */
  readonly onDropped: (count: number) => void;
}

/** A collector that is down costs this many spans of memory and no more. */
const maxWaiting = 4096;

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

/** A batch processor that counts the spans that wait or are on their way, and tells of each that was given up. */
function boundedProcessor({ endpoint, onDropped }: TraceExportOptions): SpanProcessor {
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` });
  let waiting = 0;
  const batches = new BatchSpanProcessor(
    {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          waiting -= spans.length;
          if (result.code !== ExportResultCode.SUCCESS) onDropped(spans.length);
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    },
    { maxQueueSize: maxWaiting, scheduledDelayMillis: getNumberFromEnv('OTEL_BSP_SCHEDULE_DELAY') ?? 1000 },
  );
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
