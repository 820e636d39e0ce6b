import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { PemFiles } from '../network/pemFiles.js';
import { type Followed, follow, withoutByteOrderMark } from '../process/files.js';
import { heapPart } from '../process/memory.js';
import { ConfigError, codeOf } from '../process/systemErrors.js';
import { dangersIn, type Facts, factsOf, rules, typingMistakesIn } from './rules.js';
import { Secret } from './Secret.js';
import { type Parsed, rateLimitPerMinute, type Setting, type SettingName, settings } from './settings.js';

/** The version in our package.json. */
export function packageVersion(): string {
  return createRequire(import.meta.url)('taxpayer-gateway/package.json').version;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** What the process runs with: parsed once, complete. Secrets are {@link Secret}s. */
export type Config = Readonly<ReturnType<typeof assemble>>;

/**
 * Reads the settings from an environment, by default the process's own. An empty variable counts as unset, and a line
 * break at the end of one as absent.
 *
 * @throws ConfigError naming every variable that is wrong and what was expected of it
 */
export function loadConfig(environment: Environment = process.env): Config {
  const env = Object.fromEntries(Object.entries(environment).map(([name, value = '']) => [name, valueIn(value)]));
  const problems = new Map<SettingName, string>();
  const names = Object.keys(settings) as SettingName[];
  const parsed = Object.fromEntries(names.map((name) => [name, parse(env, name, problems)])) as Parsed;
  const isGiven = (name: SettingName) => parsed[name] !== undefined || problems.has(name);
  const facts = factsOf(parsed, isGiven);
  for (const [name, holds, words] of rules) {
    if (!problems.has(name) && !holds(facts, isGiven)) problems.set(name, `${name} ${words}`);
  }
  const mistakes = typingMistakesIn(env);
  if (problems.size > 0) throw new ConfigError([...problems.values(), ...mistakes].join('\n'));
  return assemble(facts, env, mistakes);
}

/** The value of a setting; if it is wrong, that of an unset one. */
function parse(env: Environment, name: SettingName, problems: Map<SettingName, string>): unknown {
  const { schema, secret, example }: Setting = settings[name];
  try {
    const text = readText(env, name);
    // Everybody knows the secrets of the documentation. Its URLs hold nothing confidential, and may be somebody's own.
    const isExample = secret && !text?.includes('://') && text?.split(/[,\s]+/).includes(example);
    if (isExample && env['NODE_ENV'] === 'production') {
      throw new Error(`${name} is the example of the documentation: expected one of your own with NODE_ENV=production`);
    }
    return parsedValue(name, text);
  } catch (error) {
    problems.set(name, (error as Error).message);
    return schema.parse(undefined);
  }
}

/** @throws Error whose message says what the setting must be */
function parsedValue(name: SettingName, text: string | undefined): unknown {
  const result = (settings[name] as Setting).schema.safeParse(text);
  if (!result.success) throw new Error(`${name} ${result.error.issues[0]?.message}`);
  return result.data;
}

function readText(env: Environment, name: SettingName): string | undefined {
  // As in curl, the name in lower case comes first.
  const direct = (name.endsWith('_PROXY') && env[name.toLowerCase()]) || env[name] || undefined;
  const path = settings[name].secret && env[`${name}_FILE`];
  if (!path) return direct;
  if (direct) throw new Error(`${name} and ${name}_FILE are both set: expected one of them`);
  return readFile(name, path);
}

function readFile(name: SettingName, path: string): string {
  let text: string;
  try {
    text = valueIn(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`${name} cannot be read from its file (${codeOf(error)})`);
  }
  if (text === '') throw new Error(`${name} is missing: its file is empty`);
  return text;
}

/** The value in a variable or a file, without the line break that shells and editors add. */
function valueIn(content: string): string {
  return withoutByteOrderMark(content).replace(/\r?\n$/, '');
}

/** The secrets that are reloaded when their files change; the others stay as they were at the start. */
const renewable = ['UPSTREAM_CLIENT_SECRET', 'AUTH_DECISION_TOKEN', 'FEDERATION_SHARED_SECRET'] as const;

function secretFilesOf(parsed: Parsed, env: Environment) {
  return renewable.flatMap((setting) => {
    const secret = parsed[setting];
    const path = env[`${setting}_FILE`];
    return secret && path ? { setting, path, secret } : [];
  });
}

/** Renews secrets when their files change, and tells which. Content that cannot be used is ignored. */
export function followSecrets(
  { secretFiles }: Pick<Config, 'secretFiles'>,
  following: Pick<Followed, 'log' | 'stopped'>,
  onRenewed: (setting: SettingName) => void,
): void {
  for (const { setting, path, secret } of secretFiles) {
    const take = () => {
      const renewed = (parsedValue(setting, readFile(setting, path)) as Secret).reveal();
      if (renewed === secret.reveal()) return undefined;
      secret.renew(renewed);
      onRenewed(setting);
      return { setting };
    };
    follow({ ...following, paths: [path], take });
  }
}

/** Every setting under its own name, with the defaults that depend on others, and what is made of several of them. */
function assemble(s: Facts, env: Environment, mistakes: readonly string[]) {
  const isProduction = s.NODE_ENV === 'production';
  const isJwt = s.AUTH_MODE === 'jwt';
  const apolloSandboxOrigins = ['https://studio.apollographql.com', 'https://sandbox.embed.apollographql.com'];
  return {
    ...s,
    tls: filesOf(s, 'TLS_CLIENT_CA_FILE', 'TLS_CERT_FILE', 'TLS_KEY_FILE'),
    upstreamTls: filesOf(s, 'UPSTREAM_CA_FILE', 'UPSTREAM_CERT_FILE', 'UPSTREAM_KEY_FILE'),
    tracesUrl: tracesUrlOf(s, env),
    /** Empty until the embedded sandbox is started. */
    UPSTREAM_BASE_URL: s.UPSTREAM_BASE_URL ?? '',
    UPSTREAM_CLIENT_ID: s.UPSTREAM_CLIENT_ID ?? sandboxClient.clientId,
    UPSTREAM_CLIENT_SECRET: s.UPSTREAM_CLIENT_SECRET ?? new Secret(sandboxClient.clientSecret),
    CACHE_URL: s.CACHE_URL ?? (s.isSandbox ? 'memory:' : 'file:.taxpayer-gateway/cache'),
    freshness: freshnessOf(s),
    JOB_POLL_MAX_MS: Math.max(s.JOB_POLL_MAX_MS, s.JOB_POLL_MIN_MS),
    issuers: isJwt ? (s.AUTH_ISSUER ?? []).map((issuer, index) => ({ issuer, jwksUrl: s.AUTH_JWKS_URL?.[index] })) : [],
    AUTH_AUDIENCE: s.AUTH_AUDIENCE ?? [],
    AUTH_DECISION_URL: s.AUTH_MODE === 'disabled' ? undefined : s.AUTH_DECISION_URL,
    CORS_ORIGINS: s.CORS_ORIGINS ?? (isProduction ? [] : apolloSandboxOrigins),
    INTROSPECTION: s.INTROSPECTION ?? !isProduction,
    RATE_LIMIT_PER_MINUTE: s.RATE_LIMIT_PER_MINUTE ?? (isJwt ? rateLimitPerMinute : 0),
    // Not settings: nobody needs others.
    answerBytes: 8 * 1024 * 1024,
    /** For each kind of entries. */
    memoryBytes: heapPart(8),
    budgetWatchShare: 0.5,
    watchMaxMs: 3_600_000,
    /** How long a client may take to read a short answer; a long one gets more time. */
    stallMs: 30_000,
    /** Interval of heartbeats on streams and pings on sockets: proxies close idle ones. */
    keepAliveMs: 12_000,
    secretFiles: secretFilesOf(s, env),
    warnings: [...mistakes, ...dangersIn(s)],
  };
}

/** A fixed freshness is a learned one with a share of 0. */
function freshnessOf({ TOKEN_FRESH_SECONDS: fixed, ...s }: Parsed) {
  const minMs = 1000 * (fixed ?? s.TOKEN_FRESH_MIN_SECONDS);
  const maxMs = Math.max(minMs, 1000 * s.TOKEN_FRESH_MAX_SECONDS);
  return { share: fixed === undefined ? s.TOKEN_FRESH_SHARE : 0, minMs, maxMs };
}

/** What a sandbox expects of its client. */
export const sandboxClient = { clientId: 'sandbox-client', clientSecret: 'sandbox-secret-not-real' };

/** Where spans are posted to; undefined without tracing. The OpenTelemetry SDK reads its other variables itself. */
function tracesUrlOf(s: Facts, env: Environment) {
  const isOff = env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || env['OTEL_TRACES_EXPORTER']?.trim() === 'none';
  const base = s.OTEL_EXPORTER_OTLP_ENDPOINT;
  return isOff ? undefined : (s.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? (base && `${base}/v1/traces`));
}

/** The PEM files of one side of TLS; undefined if none is set. */
function filesOf(s: Facts, ca: FileSetting, cert: FileSetting, key: FileSetting): PemFiles | undefined {
  const fileOf = (setting: FileSetting) => {
    const file = s[setting];
    return file === undefined ? undefined : { setting, file };
  };
  return s[ca] || s[cert] ? { ca: fileOf(ca), cert: fileOf(cert), key: fileOf(key) } : undefined;
}

type FileSetting = `${'TLS' | 'UPSTREAM'}_${'CERT' | 'KEY'}_FILE` | 'TLS_CLIENT_CA_FILE' | 'UPSTREAM_CA_FILE';
