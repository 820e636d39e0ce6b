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
  /** Becomes the span's own: not to be shared. */
  readonly attributes: Attributes;
  /** Epoch milliseconds, by default of this moment. */
  readonly startMs?: number;
}

const none: never[] = [];
const unset: SpanStatus = { code: SpanStatusCode.UNSET };
const failed: SpanStatus = { code: SpanStatusCode.ERROR };

/**
 * A span as the exporters of OpenTelemetry read it. Theirs can do more, and takes more memory until the collector has it. One
 * whose trace is not recorded is only followed: it ends nowhere.
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

  /** Now, and once; `failure`: what went wrong, of a small set. */
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

/** Read once: a getter that costs more than the time itself. */
const { timeOrigin } = performance;

/** The epoch milliseconds of a time of `performance.now()`, by default of this moment. */
export function epochMs(at = performance.now()): number {
  return timeOrigin + at;
}

/** Seconds, and nanoseconds of the second. */
function hrTimeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.floor((ms - seconds * 1000) * 1e6)];
}
