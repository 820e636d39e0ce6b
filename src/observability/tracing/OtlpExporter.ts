import type { Span, SpanKind } from './Span.js';

export interface OtlpExporterOptions {
  /** Base address of the collector: spans are posted to its `/v1/traces`. */
  readonly endpoint: string;
  readonly version: string;
  /** Spans that were given up: the queue was full or the collector did not take them. */
  readonly onDropped: (count: number) => void;
}

/** Longest a span waits for others to be sent with it, in milliseconds. */
const batchMs = 1000;
const batchSize = 512;
/** A collector that is down costs this many spans of memory and no more. */
const queueSize = 4096;
const deadlineMs = 5000;

const kinds: Readonly<Record<SpanKind, number>> = { internal: 1, server: 2, client: 3 };

/** Sends spans in batches as OTLP/HTTP with JSON (OTLP 1.x, section "JSON Protobuf Encoding"). Never fails a request. */
export class OtlpExporter {
  readonly #options: OtlpExporterOptions;
  readonly #url: string;
  #queue: Span[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(options: OtlpExporterOptions) {
    this.#options = options;
    this.#url = `${options.endpoint.replace(/\/+$/, '')}/v1/traces`;
  }

  add(span: Span): void {
    if (this.#queue.length >= queueSize) {
      this.#options.onDropped(1);
      return;
    }
    this.#queue.push(span);
    if (this.#queue.length === batchSize) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), batchMs).unref();
  }

  /** Sends what is queued; resolves when it was taken or given up. */
  async stop(): Promise<void> {
    this.#send();
    await this.#sending;
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const earlier = this.#sending;
    this.#sending = earlier.then(() => this.#post());
  }

  async #post(): Promise<void> {
    const spans = this.#queue;
    if (spans.length === 0) return;
    this.#queue = [];
    try {
      const response = await fetch(this.#url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(this.#requestOf(spans)),
        redirect: 'error',
        signal: AbortSignal.timeout(deadlineMs),
      });
      await response.body?.cancel();
      if (!response.ok) this.#options.onDropped(spans.length);
    } catch {
      this.#options.onDropped(spans.length);
    }
  }

  #requestOf(spans: readonly Span[]): unknown {
    const resource = { 'service.name': 'taxpayer-gateway', 'service.version': this.#options.version };
    return {
      resourceSpans: [
        {
          resource: { attributes: attributesOf({ ...resource, 'process.pid': process.pid }) },
          scopeSpans: [
            { scope: { name: 'taxpayer-gateway', version: this.#options.version }, spans: spans.map(encoded) },
          ],
        },
      ],
    };
  }
}

function encoded(span: Span): unknown {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentId !== undefined && { parentSpanId: span.parentId }),
    name: span.name,
    kind: kinds[span.kind],
    startTimeUnixNano: nanoseconds(span.startedAt),
    endTimeUnixNano: nanoseconds(span.endedAt),
    attributes: attributesOf(span.attributes),
    status: span.failed ? { code: 2 } : {},
  };
}

function attributesOf(attributes: Span['attributes']): unknown[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { intValue: String(value) },
  }));
}

/** 64-bit integers are strings in OTLP's JSON. */
function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n);
}
