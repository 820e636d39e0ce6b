import { randomBytes } from 'node:crypto';

/** Where a span belongs: a caller's `traceparent`, or the span it was begun under. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
}

export type SpanKind = 'internal' | 'server' | 'client';

/** Values of closed sets and numbers only: nothing a caller or the service chose may become an attribute. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** One timed piece of work. */
export interface Span extends TraceParent {
  readonly parentId: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  /** Epoch milliseconds, with fractions. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: SpanAttributes;
  readonly failed: boolean;
}

const traceparentForm = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads a W3C `traceparent` header (Trace Context, section 3.2). `unsampled` when the caller asks not to be recorded;
 * undefined when there is none that can be used, and a trace of our own begins.
 */
export function readTraceparent(header: string | string[] | undefined): TraceParent | 'unsampled' | undefined {
  const [, version, traceId = '', spanId = '', flags = '', rest] =
    traceparentForm.exec(typeof header === 'string' ? header.trim() : '') ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return (Number.parseInt(flags, 16) & 1) === 1 ? { traceId, spanId } : 'unsampled';
}

export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}

export function newSpanId(): string {
  return randomBytes(8).toString('hex');
}

/** Now, in epoch milliseconds with the resolution of the monotonic clock. */
export function preciseNow(): number {
  return performance.timeOrigin + performance.now();
}
