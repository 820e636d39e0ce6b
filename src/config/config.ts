import { distance } from 'fastest-levenshtein';
import type { z } from 'zod';
import { Secret } from './secret.js';
import { type SettingName, settings } from './settings.js';
import { readCompleteSync, secretIn } from './watchFile.js';

type Parsed = { readonly [Name in SettingName]?: z.output<(typeof settings)[Name]['schema']> };

/** What the process runs with: parsed once, frozen, complete. Secrets are {@link Secret}s. */
export type Config = ReturnType<typeof assemble>;

/** Everything wrong with the environment, one line each; the lines never hold a value. */
export class ConfigError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
  }
}

/**
 * Reads the settings from an environment, by default the process's own. An empty variable counts as unset.
 *
 * @throws ConfigError naming every variable that is wrong and what was expected of it
 */
export function loadConfig(env: Readonly<Record<string, string | undefined>> = process.env): Config {
  const problems: string[] = [];
  const parsed: Record<string, unknown> = {};
  for (const name of Object.keys(settings) as SettingName[]) {
    const text = readText(env, name, problems);
    if (text === undefined) continue;
    const result = settings[name].schema.safeParse(text);
    if (result.success) parsed[name] = result.data;
    else problems.push(`${name} ${result.error.issues[0]?.message ?? 'is malformed'}`);
  }
  const config = assemble(parsed as Parsed, env, problems);
  if (problems.length > 0) throw new ConfigError([...problems, ...misspelled(env)]);
  return config;
}

function readText(
  env: Readonly<Record<string, string | undefined>>,
  name: SettingName,
  problems: string[],
): string | undefined {
  const setting = settings[name];
  const direct = env[name];
  const file = 'secret' in setting ? env[`${name}_FILE`] : undefined;
  if (!file) return direct === '' ? undefined : direct;
  if (direct) {
    problems.push(`${name} and ${name}_FILE are both set: expected one of them`);
    return undefined;
  }
  try {
    const text = secretIn(readCompleteSync(file).toString());
    if (text === '') problems.push(`${name}_FILE is empty: expected a value in the file it names`);
    return text || undefined;
  } catch (error) {
    problems.push(`${name}_FILE cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`);
    return undefined;
  }
}

function assemble(parsed: Parsed, env: Readonly<Record<string, string | undefined>>, problems: string[]) {
  const upstream = upstreamOf(parsed, env, problems);
  const auth = authOf(parsed, upstream === 'embedded-sandbox', problems);
  const host = parsed.HOST ?? (upstream === 'embedded-sandbox' ? '127.0.0.1' : '0.0.0.0');
  if (auth.mode === 'developer' && upstream === 'embedded-sandbox' && !isLoopback(host)) {
    problems.push(
      'HOST must be a loopback address while every caller is the local developer: set AUTH_JWKS_URL, AUTH_ISSUER and AUTH_AUDIENCE, or AUTH_MODE=disabled',
    );
  }
  if ((parsed.TLS_CERT_FILE === undefined) !== (parsed.TLS_KEY_FILE === undefined)) {
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE must be set together');
  }
  const jobPollMinMs = parsed.JOB_POLL_MIN_MS ?? 1000;
  const jobPollMaxMs = parsed.JOB_POLL_MAX_MS ?? Math.max(30_000, jobPollMinMs);
  if (jobPollMaxMs < jobPollMinMs) problems.push('JOB_POLL_MAX_MS must not be below JOB_POLL_MIN_MS');
  const deadlineMs = parsed.UPSTREAM_DEADLINE_MS ?? Math.max(10_000, parsed.UPSTREAM_TIMEOUT_MS ?? 0);
  const production = parsed.NODE_ENV === 'production';

  return Object.freeze({
    port: parsed.PORT ?? 4000,
    host,
    workers: parsed.WORKERS ?? 1,
    drainTimeoutMs: parsed.DRAIN_TIMEOUT_MS ?? 10_000,
    tls:
      parsed.TLS_CERT_FILE !== undefined && parsed.TLS_KEY_FILE !== undefined
        ? { certFile: parsed.TLS_CERT_FILE, keyFile: parsed.TLS_KEY_FILE }
        : undefined,
    logLevel: parsed.LOG_LEVEL ?? 'info',
    metricsPort: parsed.METRICS_PORT,
    otlpEndpoint: parsed.OTEL_EXPORTER_OTLP_ENDPOINT,
    upstream,
    service: {
      apiVersion: parsed.UPSTREAM_API_VERSION ?? '2024-01-01',
      timeoutMs: parsed.UPSTREAM_TIMEOUT_MS ?? 5000,
      deadlineMs,
      breakerResetMs: parsed.BREAKER_RESET_MS ?? 10_000,
      maxResponseBytes: parsed.MAX_RESPONSE_BYTES ?? 1_048_576,
    },
    providersFile: parsed.PROVIDERS_FILE,
    cache: {
      url: parsed.CACHE_URL ?? 'lmdb:.taxpayer-gateway/cache',
      encryptionKey: secretOf(parsed.CACHE_ENCRYPTION_KEY),
      previousEncryptionKey: secretOf(parsed.CACHE_ENCRYPTION_KEY_PREVIOUS),
      maxEntries: parsed.CACHE_MAX_ENTRIES ?? 100_000,
    },
    tokens: {
      freshMs: (parsed.TOKEN_FRESH_SECONDS ?? 900) * 1000,
      budgetPerHour: parsed.TOKEN_BUDGET_PER_HOUR ?? 600,
      budgetCallerShare: parsed.TOKEN_BUDGET_CALLER_SHARE ?? 0.25,
    },
    jobs: {
      pollMinMs: jobPollMinMs,
      pollMaxMs: jobPollMaxMs,
      watchMaxMs: (parsed.JOB_WATCH_MAX_SECONDS ?? 3600) * 1000,
    },
    auth,
    federation: {
      secret: secretOf(parsed.FEDERATION_SHARED_SECRET),
      previousSecret: secretOf(parsed.FEDERATION_SHARED_SECRET_PREVIOUS),
      /** Set when they came from files, which are then watched. */
      secretFile: env['FEDERATION_SHARED_SECRET_FILE'] || undefined,
      previousSecretFile: env['FEDERATION_SHARED_SECRET_PREVIOUS_FILE'] || undefined,
      callbackOrigins: parsed.CALLBACK_ORIGINS ?? [],
    },
    corsOrigins:
      parsed.CORS_ORIGINS ??
      (production ? [] : ['https://studio.apollographql.com', 'https://sandbox.embed.apollographql.com']),
    introspection: parsed.INTROSPECTION ?? !production,
    trustedDocumentsFile: parsed.TRUSTED_DOCUMENTS_FILE,
    limits: {
      requestsPerMinute: parsed.RATE_LIMIT_PER_MINUTE ?? (auth.mode === 'jwt' ? 1200 : 0),
      bodyBytes: parsed.MAX_BODY_BYTES ?? 262_144,
      answerBytes: parsed.MAX_ANSWER_BYTES ?? 8_388_608,
      depth: parsed.MAX_DEPTH ?? 12,
      aliases: parsed.MAX_ALIASES ?? 60,
      tokens: parsed.MAX_TOKENS ?? 2000,
      directives: parsed.MAX_DIRECTIVES ?? 50,
      rootFields: parsed.MAX_ROOT_FIELDS ?? 60,
      representations: parsed.MAX_REPRESENTATIONS ?? 200,
      metadataDepth: parsed.MAX_METADATA_DEPTH ?? 20,
      idLength: parsed.MAX_ID_LENGTH ?? 256,
      connections: parsed.MAX_CONNECTIONS ?? 10_000,
      subscriptions: parsed.MAX_SUBSCRIPTIONS ?? 100,
    },
    /** Variables that look like a slip of the pen; worth a warning, not a refusal. */
    warnings: misspelled(env),
  });
}

/** Where the REST service is, and what we present to it. */
export interface UpstreamCredentials {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Set when the secret came from a file, which is then watched. */
  readonly clientSecretFile: string | undefined;
}

function upstreamOf(
  parsed: Parsed,
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
): UpstreamCredentials | 'embedded-sandbox' {
  const { UPSTREAM_BASE_URL: baseUrl, UPSTREAM_CLIENT_ID: clientId, UPSTREAM_CLIENT_SECRET: clientSecret } = parsed;
  const wanted = env['UPSTREAM_BASE_URL'] || clientId !== undefined || clientSecret !== undefined;
  if (!wanted) return 'embedded-sandbox';
  if (!env['UPSTREAM_BASE_URL'])
    problems.push('UPSTREAM_BASE_URL is missing: expected with UPSTREAM_CLIENT_ID or UPSTREAM_CLIENT_SECRET');
  if (!env['UPSTREAM_CLIENT_ID']) problems.push('UPSTREAM_CLIENT_ID is missing: expected with UPSTREAM_BASE_URL');
  if (clientSecret === undefined && !problems.some((line) => line.startsWith('UPSTREAM_CLIENT_SECRET'))) {
    problems.push(
      'UPSTREAM_CLIENT_SECRET (or UPSTREAM_CLIENT_SECRET_FILE) is missing: expected with UPSTREAM_BASE_URL',
    );
  }
  return {
    baseUrl: baseUrl ?? '',
    clientId: clientId ?? '',
    clientSecret: new Secret(clientSecret ?? ''),
    clientSecretFile: env['UPSTREAM_CLIENT_SECRET_FILE'] || undefined,
  };
}

function authOf(parsed: Parsed, sandbox: boolean, problems: string[]) {
  const jwksUrls = parsed.AUTH_JWKS_URL ?? [];
  const issuers = parsed.AUTH_ISSUER ?? [];
  const mode = parsed.AUTH_MODE ?? (sandbox && jwksUrls.length === 0 ? 'developer' : 'jwt');
  if (mode === 'developer' && !sandbox) {
    problems.push('AUTH_MODE=developer is for the embedded sandbox: expected jwt or disabled with UPSTREAM_BASE_URL');
  }
  if (mode === 'jwt') {
    for (const name of ['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const) {
      if (parsed[name] === undefined && !problems.some((line) => line.startsWith(name))) {
        problems.push(`${name} is missing: expected with AUTH_MODE=jwt (AUTH_MODE=disabled serves anybody)`);
      }
    }
    if (jwksUrls.length > 0 && issuers.length > 0 && jwksUrls.length !== issuers.length) {
      problems.push('AUTH_JWKS_URL and AUTH_ISSUER must have the same number of entries: they pair one by one');
    }
  }
  if (new Set(issuers).size !== issuers.length) problems.push('AUTH_ISSUER must not name an issuer twice');
  return {
    mode,
    issuers: issuers.map((issuer, index) => ({ issuer, jwksUrl: jwksUrls[index] ?? '' })),
    audience: parsed.AUTH_AUDIENCE ?? [],
    taxpayersClaim: parsed.AUTH_TAXPAYERS_CLAIM ?? 'taxpayer_ids',
  };
}

function secretOf(text: string | undefined): Secret | undefined {
  return text === undefined ? undefined : new Secret(text);
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Variables of ours with a letter wrong: `UPSTREAM_BASEURL`. Names that other programs own are left alone. */
function misspelled(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = Object.entries(settings).flatMap(([name, setting]) =>
    'secret' in setting ? [name, `${name}_FILE`] : [name],
  );
  const longNames = known.filter((name) => name.includes('_'));
  return Object.keys(env).flatMap((name) => {
    if (known.includes(name) || name.length < 6) return [];
    const meant = longNames.find((candidate) => distance(candidate, name) <= 2);
    return meant === undefined ? [] : [`${name} is not a setting: did you mean ${meant}?`];
  });
}
