import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { Expect, Parsed } from './settings.js';

type Environment = Readonly<Record<string, string | undefined>>;

export type TraceProtocol = 'http/json' | 'http/protobuf';

/** Where spans are posted to, and how they are written; undefined without tracing. */
export function tracesOf(
  parsed: Parsed,
  env: Environment,
  expect: Expect,
): { readonly url: string; readonly protocol: TraceProtocol } | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole } = parsed;
  if (parsed.OTEL_SDK_DISABLED || env['OTEL_TRACES_EXPORTER']?.trim() === 'none') return undefined;
  const url = whole ?? (base && `${base.replace(/\/+$/, '')}/v1/traces`);
  if (url === undefined) return undefined;
  const forTraces = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL';
  const name = parsed[forTraces] === undefined ? 'OTEL_EXPORTER_OTLP_PROTOCOL' : forTraces;
  const protocol = parsed[name] ?? 'http/json';
  const isSpoken = protocol === 'http/json' || protocol === 'http/protobuf';
  expect(name, isSpoken, `${name} must be http/json or http/protobuf: the gateway sends traces over HTTP only`);
  return { url, protocol: protocol as TraceProtocol };
}

/** What a standard variable, which the OpenTelemetry SDK reads by itself and silently, must be. */
type Form = readonly [words: string, fits: (text: string) => boolean];

const samplers = ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]);
const between = (min: number, max: number) => (text: string) => Number(text) >= min && Number(text) <= max;
const timeout: Form = ['a number of milliseconds above 0', between(Number.MIN_VALUE, Number.MAX_VALUE)];
const compression: Form = ['none or gzip', (text) => ['none', 'gzip'].includes(text.trim())];
// The SDK cuts off what follows a semicolon.
const headers: Form = [
  'name=value pairs separated by commas, percent-encoded (; too)',
  (text) => !text.includes(';') && pairsOf(text).every(isHeader),
];

const forms: Readonly<Record<string, Form>> = {
  OTEL_TRACES_EXPORTER: ['otlp or none', (text) => text.trim() === 'otlp'],
  OTEL_TRACES_SAMPLER: [`one of ${samplers.join(', ')}`, (text) => samplers.includes(text)],
  OTEL_EXPORTER_OTLP_HEADERS: headers,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: headers,
  OTEL_EXPORTER_OTLP_COMPRESSION: compression,
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: compression,
  OTEL_EXPORTER_OTLP_TIMEOUT: timeout,
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: timeout,
  OTEL_RESOURCE_ATTRIBUTES: [
    'key=value pairs separated by commas, percent-encoded, of at most 255 characters each',
    (text) => pairsOf(text).every((pair) => pair.length === 2 && pair[0] && pair.every((part) => part.length < 256)),
  ],
  OTEL_BSP_SCHEDULE_DELAY: ['a number of milliseconds', between(0, 2_147_483_647)],
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: ['a number from 1 to 4096', between(1, 4096)],
};

/** One line for each standard variable that is wrong. It is worth no refusal: OpenTelemetry asks to go on without it. */
export function traceWarnings(env: Environment): string[] {
  const given = Object.keys(forms).filter((name) => env[name]?.trim());
  const wrong = given.flatMap((name) => {
    const [words, fits] = forms[name] as Form;
    return fits(env[name] ?? '') ? [] : `${name} must be ${words}`;
  });
  const share = env['OTEL_TRACES_SAMPLER_ARG']?.trim() ?? '';
  const isShared = env['OTEL_TRACES_SAMPLER']?.endsWith('traceidratio') ?? false;
  if (isShared ? share === '' || !between(0, 1)(share) : share !== '') {
    wrong.push('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, with a ratio in OTEL_TRACES_SAMPLER');
  }
  return wrong.map((line) => `${line}: what is not has no effect`);
}

/** The parts of each entry, decoded; an entry that cannot be decoded has none. */
function pairsOf(text: string): string[][] {
  const entries = text.split(',').filter((entry) => entry.trim() !== '');
  return entries.map((entry) => {
    try {
      return entry.split('=').map((part) => decodeURIComponent(part.trim()));
    } catch {
      return [];
    }
  });
}

function isHeader([name = '', ...value]: readonly string[]): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value.join('='));
    return value.some(Boolean);
  } catch {
    return false;
  }
}
