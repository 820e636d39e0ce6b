import type { TlsFiles } from '../network/tlsFiles.js';
import type { Expect, Parsed } from './settings.js';
import { collectorTlsFiles } from './tlsFileSettings.js';

export type TraceProtocol = 'http/json' | 'http/protobuf';

/** Where spans are posted to, and how they are written and sent; undefined without tracing. */
export function tracesOf(
  parsed: Parsed,
  env: Readonly<Record<string, string | undefined>>,
  expect: Expect,
): { readonly url: string; readonly protocol: TraceProtocol; readonly tls: TlsFiles | undefined } | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole } = parsed;
  if (parsed.OTEL_SDK_DISABLED) return undefined;
  const url = whole ?? (base && `${base.replace(/\/+$/, '')}/v1/traces`);
  if (url === undefined) return undefined;
  const forTraces = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL';
  const name = parsed[forTraces] === undefined ? 'OTEL_EXPORTER_OTLP_PROTOCOL' : forTraces;
  const protocol = parsed[name] ?? 'http/json';
  const isSpoken = protocol === 'http/json' || protocol === 'http/protobuf';
  expect(name, isSpoken, `${name} must be http/json or http/protobuf: the gateway sends traces over HTTP only`);
  return { url, protocol: protocol as TraceProtocol, tls: collectorTlsFiles(env, expect) };
}
