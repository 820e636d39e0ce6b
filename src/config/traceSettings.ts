import type { Expect, Parsed } from './settings.js';

export type TraceProtocol = 'http/json' | 'http/protobuf';

/** Where spans are posted to, and how they are written; undefined without tracing. */
export function tracesOf(
  parsed: Parsed,
  expect: Expect,
): { readonly url: string; readonly protocol: TraceProtocol } | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole } = parsed;
  if (parsed.OTEL_SDK_DISABLED) return undefined;
  const url = whole ?? (base && `${base.replace(/\/+$/, '')}/v1/traces`);
  if (url === undefined) return undefined;
  const forTraces = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL';
  const name = parsed[forTraces] === undefined ? 'OTEL_EXPORTER_OTLP_PROTOCOL' : forTraces;
  const protocol = parsed[name] ?? 'http/json';
  const isSpoken = protocol === 'http/json' || protocol === 'http/protobuf';
  expect(name, isSpoken, `${name} must be http/json or http/protobuf: the gateway sends traces over HTTP only`);
  return { url, protocol: protocol as TraceProtocol };
}
