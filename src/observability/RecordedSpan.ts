import {
  type Attributes,
  type HrTime,
  type SpanContext,
  type SpanKind,
  type SpanStatus,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';

/** Where spans come from, and where they go when they end. */
export interface SpanOrigin {
  readonly resource: Resource;
  readonly instrumentationScope: InstrumentationScope;
  readonly onEnd: (span: ReadableSpan) => void;
}

/** What is known of a span as it begins. */
export interface SpanBegin {
  readonly name: string;
  readonly kind: SpanKind;
  /** The span takes this object over and changes it, so it must not be shared. */
  readonly attributes: Attributes;
  /** Epoch milliseconds. Default: now. */
  readonly startMs?: number;
}

const none: never[] = [];
const unset: SpanStatus = { code: SpanStatusCode.UNSET };
const failed: SpanStatus = { code: SpanStatusCode.ERROR };

/**
 * A span in the form that OpenTelemetry's exporters read. The SDK's own span can do more, but takes more memory until the
 * collector has it. A span whose trace is not recorded only carries the trace context and is never exported.
 */
export class RecordedSpan implements ReadableSpan {
  name: string;
  status = unset;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  readonly parentSpanContext?: SpanContext;
  readonly #context: SpanContext;
  readonly #startMs: number;
  #endMs: number | undefined;

  constructor(
    private readonly origin: SpanOrigin,
    begin: SpanBegin,
    context: SpanContext,
    parent: SpanContext | undefined,
  ) {
    this.name = begin.name;
    this.kind = begin.kind;
    this.attributes = begin.attributes;
    this.#startMs = begin.startMs ?? epochMs();
    this.#context = context;
    if (parent !== undefined) this.parentSpanContext = parent;
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  get isRecorded(): boolean {
    return (this.#context.traceFlags & TraceFlags.SAMPLED) !== 0;
  }

  /** Marks the span as failed; `type` is of a small set. */
  fail(type?: string): void {
    this.status = failed;
    if (type !== undefined) this.attributes['error.type'] = type;
  }

  /** Ends the span now; a second call does nothing. `failure` says what went wrong, of a small set. */
  end(failure?: string): void {
    if (this.ended) return;
    if (failure !== undefined) this.fail(failure);
    this.#endMs = Math.max(epochMs(), this.#startMs);
    if (this.isRecorded) this.origin.onEnd(this);
  }

  get ended(): boolean {
    return this.#endMs !== undefined;
  }

  get startTime(): HrTime {
    return hrTimeOf(this.#startMs);
  }

  get endTime(): HrTime {
    return hrTimeOf(this.#endMs ?? this.#startMs);
  }

  get duration(): HrTime {
    return hrTimeOf((this.#endMs ?? this.#startMs) - this.#startMs);
  }

  get resource(): Resource {
    return this.origin.resource;
  }

  get instrumentationScope(): InstrumentationScope {
    return this.origin.instrumentationScope;
  }

  get links(): never[] {
    return none;
  }

  get events(): never[] {
    return none;
  }

  get droppedAttributesCount(): number {
    return 0;
  }

  get droppedEventsCount(): number {
    return 0;
  }

  get droppedLinksCount(): number {
    return 0;
  }
}

/** Read once: this getter costs more than `performance.now()`. */
const { timeOrigin } = performance;

/** Now, in epoch milliseconds and parts of one. */
export function epochMs(): number {
  return timeOrigin + performance.now();
}

/** Seconds, and nanoseconds of the second. */
function hrTimeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.floor((ms - seconds * 1000) * 1e6)];
}
