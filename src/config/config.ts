import { createRequire } from 'node:module';
import type { Scope } from '../auth/caller.js';
import { tokenType } from '../auth/verifyToken.js';
import { ConfigError } from './ConfigError.js';
import { decisionOf } from './decisionSettings.js';
import { Secret } from './secret.js';
import { type Expect, type Parsed, type Setting, type SettingName, settings, webUrl } from './settings.js';
import { serverTlsOf, serviceTlsOf } from './tlsFileSettings.js';
import { tracesOf, traceWarnings } from './traceSettings.js';
import { explorersAreOpen, isOfService, warningsOf } from './warnings.js';
import { readCompleteSync, valueIn } from './watchFile.js';

/** The version in our package.json. */
export function packageVersion(): string {
  return createRequire(import.meta.url)('taxpayer-gateway/package.json').version;
}

type Environment = Readonly<Record<string, string | undefined>>;
/** One line for each setting that is wrong. */
type Problems = Map<SettingName, string>;

/** What the process runs with: parsed once, frozen, complete. Secrets are {@link Secret}s. */
export type Config = ReturnType<typeof assemble>;

/**
 * Reads the settings from an environment, by default the process's own. An empty variable counts as unset, and a line
 * break at the end of one as absent.
 *
 * @throws ConfigError naming every variable that is wrong and what was expected of it
 */
export function loadConfig(environment: Environment = process.env): Config {
  const env = Object.fromEntries(Object.entries(environment).map(([name, value = '']) => [name, valueIn(value)]));
  const problems: Problems = new Map();
  const names = Object.keys(settings) as SettingName[];
  const parsed = Object.fromEntries(names.map((name) => [name, parse(env, name, problems)])) as Parsed;
  const config = assemble(parsed, env, problems);
  if (problems.size > 0) throw new ConfigError([...problems.values(), ...warningsOf(env)]);
  return config;
}

/** The value of a setting. If it is unset or wrong: its default, or undefined for an optional setting. */
function parse(env: Environment, name: SettingName, problems: Problems): unknown {
  const { schema, fallback, optional, secret, example }: Setting = settings[name];
  const text = readText(env, name, problems);
  // Anybody knows it. The printed URLs hold nothing confidential, and may well be somebody's own.
  if (secret && text?.split(/[,\n]/).includes(example) && !text.includes('://') && env['NODE_ENV'] === 'production') {
    const own = 'expected one of your own with NODE_ENV=production';
    problems.set(name, `${name} is the example of the documentation: ${own}`);
  }
  const result = text === undefined ? undefined : schema.safeParse(text);
  if (result?.success) return result.data;
  if (result) problems.set(name, `${name} ${result.error.issues[0]?.message ?? 'is malformed'}`);
  return optional ? undefined : schema.parse(fallback);
}

function readText(env: Environment, name: SettingName, problems: Problems): string | undefined {
  // As in curl, the name in lower case comes first.
  const direct = (name.endsWith('_PROXY') && env[name.toLowerCase()]) || env[name] || undefined;
  if (isOfService(name, direct)) return undefined;
  const file = settings[name].secret && env[`${name}_FILE`];
  if (!file) return direct;
  if (direct) return void problems.set(name, `${name} and ${name}_FILE are both set: expected one of them`);
  try {
    const text = valueIn(readCompleteSync(file).toString());
    if (text !== '') return text;
    // An empty file ends a rotation.
    if (name === 'FEDERATION_SHARED_SECRET_PREVIOUS') return undefined;
    problems.set(name, `${name}_FILE is empty: expected a value in the file it names`);
  } catch (error) {
    problems.set(name, `${name}_FILE cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`);
  }
  return undefined;
}

function assemble(parsed: Parsed, env: Environment, problems: Problems) {
  const expect: Expect = (name, isSo, line) => {
    if (!isSo && !problems.has(name)) problems.set(name, line);
  };
  const upstream = upstreamOf(parsed, env, problems, expect);
  const isSandbox = upstream === 'embedded-sandbox';
  const auth = { ...authOf(parsed, isSandbox, expect), decision: decisionOf(parsed, env, expect) };
  const { HOST: host = isSandbox ? '127.0.0.1' : '0.0.0.0' } = parsed;
  const openToAll =
    'HOST must be a loopback address while every caller is the local developer: set AUTH_ISSUER and AUTH_AUDIENCE, or AUTH_MODE=disabled';
  expect('HOST', auth.mode !== 'developer' || !isSandbox || isLoopback(host), openToAll);
  /** The value of a setting. Its default, but no value in the environment, is raised to `least`. */
  const atLeast = (name: 'JOB_POLL_MAX_MS' | 'UPSTREAM_DEADLINE_MS', least: number) =>
    env[name] ? parsed[name] : Math.max(parsed[name], least);
  const [pollMinMs, pollMaxMs] = [parsed.JOB_POLL_MIN_MS, atLeast('JOB_POLL_MAX_MS', parsed.JOB_POLL_MIN_MS)];
  expect('JOB_POLL_MAX_MS', pollMaxMs >= pollMinMs, 'JOB_POLL_MAX_MS must not be below JOB_POLL_MIN_MS');
  expect('METRICS_PORT', parsed.METRICS_PORT !== parsed.PORT, 'METRICS_PORT must differ from PORT');
  const traces = tracesOf(parsed, env, expect);
  const isProduction = parsed.NODE_ENV === 'production';
  const isOpen = !isSandbox && !isLoopback(host) && !isProduction && parsed.INTROSPECTION === undefined;
  const sandboxOrigins = ['https://studio.apollographql.com', 'https://sandbox.embed.apollographql.com'];

  return Object.freeze({
    port: parsed.PORT,
    host,
    drainTimeoutMs: parsed.DRAIN_TIMEOUT_MS,
    tls: serverTlsOf(parsed, expect),
    trustedProxies: parsed.TRUSTED_PROXIES,
    proxies: { httpsProxy: parsed.HTTPS_PROXY, httpProxy: parsed.HTTP_PROXY, noProxy: parsed.NO_PROXY ?? [] },
    logLevel: parsed.LOG_LEVEL,
    operationLog: { which: parsed.LOG_OPERATIONS, slowMs: parsed.LOG_SLOW_MS },
    audit: parsed.AUDIT,
    metricsPort: parsed.METRICS_PORT,
    traces,
    upstream,
    service: {
      tls: serviceTlsOf(parsed, isSandbox || upstream.baseUrl.startsWith('https:'), expect),
      apiVersion: parsed.UPSTREAM_API_VERSION,
      timeoutMs: parsed.UPSTREAM_TIMEOUT_MS,
      deadlineMs: atLeast('UPSTREAM_DEADLINE_MS', parsed.UPSTREAM_TIMEOUT_MS),
      breakerResetMs: parsed.BREAKER_RESET_MS,
      maxResponseBytes: parsed.MAX_RESPONSE_BYTES,
    },
    providersFile: parsed.PROVIDERS_FILE,
    cache: {
      url: parsed.CACHE_URL ?? (isSandbox ? 'memory:' : 'file:.taxpayer-gateway/cache'),
      /** The first seals, each opens, the last gives the names. Without any the client secret takes their place. */
      encryptionKeys: parsed.CACHE_ENCRYPTION_KEY ?? [],
      maxEntries: parsed.CACHE_MAX_ENTRIES,
      keepMs: parsed.STORE_TTL_DAYS * 86_400_000,
    },
    tokens: {
      freshness: freshnessOf(parsed, env, expect),
      budgetPerHour: parsed.TOKEN_BUDGET_PER_HOUR,
      budgetCallerShare: parsed.TOKEN_BUDGET_CALLER_SHARE,
      budgetWatchShare: parsed.TOKEN_BUDGET_WATCH_SHARE,
    },
    jobs: { pollMinMs, pollMaxMs, watchMaxMs: parsed.JOB_WATCH_MAX_SECONDS * 1000 },
    auth,
    federation: {
      secret: parsed.FEDERATION_SHARED_SECRET,
      previousSecret: parsed.FEDERATION_SHARED_SECRET_PREVIOUS,
      /** The files that the two secrets came from, which are then watched. */
      secretFile: env['FEDERATION_SHARED_SECRET_FILE'] || undefined,
      previousSecretFile: env['FEDERATION_SHARED_SECRET_PREVIOUS_FILE'] || undefined,
    },
    corsOrigins: parsed.CORS_ORIGINS ?? (isProduction ? [] : sandboxOrigins),
    introspection: parsed.INTROSPECTION ?? !isProduction,
    trustedDocuments: trustedDocumentsOf(parsed, env, expect),
    limits: {
      requestsPerMinute: parsed.RATE_LIMIT_PER_MINUTE ?? (auth.mode === 'jwt' ? 1200 : 0),
      bodyBytes: parsed.MAX_BODY_BYTES,
      answerBytes: parsed.MAX_ANSWER_BYTES,
      depth: parsed.MAX_DEPTH,
      aliases: parsed.MAX_ALIASES,
      tokens: parsed.MAX_TOKENS,
      directives: parsed.MAX_DIRECTIVES,
      rootFields: parsed.MAX_ROOT_FIELDS,
      mutationFields: parsed.MAX_MUTATION_FIELDS,
      representations: parsed.MAX_REPRESENTATIONS,
      metadataDepth: parsed.MAX_METADATA_DEPTH,
      idLength: parsed.MAX_ID_LENGTH,
      connections: parsed.MAX_CONNECTIONS,
      subscriptions: parsed.MAX_SUBSCRIPTIONS,
    },
    warnings: [...warningsOf(env), ...(traces ? traceWarnings(env) : []), ...(isOpen ? [explorersAreOpen] : [])],
  });
}

function trustedDocumentsOf(parsed: Parsed, env: Environment, expect: Expect) {
  const { TRUSTED_DOCUMENTS_FILE: paths, TRUSTED_DOCUMENTS_MODE: mode = 'enforce' } = parsed;
  const isAlone = env['TRUSTED_DOCUMENTS_MODE'] && !env['TRUSTED_DOCUMENTS_FILE'];
  expect('TRUSTED_DOCUMENTS_MODE', !isAlone, 'TRUSTED_DOCUMENTS_MODE is set: expected with TRUSTED_DOCUMENTS_FILE');
  return paths && { paths, mode };
}

/** A fixed freshness is a learned one with a share of 0. */
function freshnessOf(parsed: Parsed, env: Environment, expect: Expect) {
  const { TOKEN_FRESH_SECONDS: fixed, TOKEN_FRESH_MIN_SECONDS: min, TOKEN_FRESH_MAX_SECONDS: max } = parsed;
  const learning = ['TOKEN_FRESH_SHARE', 'TOKEN_FRESH_MIN_SECONDS', 'TOKEN_FRESH_MAX_SECONDS'] as const;
  const beside = learning.filter((name) => env[name]);
  const alone = `TOKEN_FRESH_SECONDS is a fixed freshness: expected without ${beside.join(', ')}`;
  expect('TOKEN_FRESH_SECONDS', fixed === undefined || beside.length === 0, alone);
  if (fixed !== undefined) return { share: 0, minMs: 1000 * fixed, maxMs: 1000 * Math.max(fixed, 86_400) };
  const order = 'TOKEN_FRESH_MIN_SECONDS (60 unless set) must not be above TOKEN_FRESH_MAX_SECONDS (86400 unless set)';
  expect('TOKEN_FRESH_MIN_SECONDS', min <= max, order);
  return { share: parsed.TOKEN_FRESH_SHARE, minMs: 1000 * min, maxMs: 1000 * max };
}

/** What the gateway presents to its embedded sandbox. */
export const embeddedSandbox = { clientId: 'sandbox-client', clientSecret: new Secret('sandbox-secret-not-real') };

/** Where the service is, and what we present to it. */
export interface UpstreamCredentials {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Set when the secret came from a file, which is then watched. */
  readonly clientSecretFile?: string | undefined;
}

const upstreamNeeds = {
  UPSTREAM_BASE_URL: 'UPSTREAM_BASE_URL is missing: expected with UPSTREAM_CLIENT_ID or UPSTREAM_CLIENT_SECRET',
  UPSTREAM_CLIENT_ID: 'UPSTREAM_CLIENT_ID is missing: expected with UPSTREAM_BASE_URL',
  UPSTREAM_CLIENT_SECRET:
    'UPSTREAM_CLIENT_SECRET (or UPSTREAM_CLIENT_SECRET_FILE) is missing: expected with UPSTREAM_BASE_URL',
} as const;

function upstreamOf(
  parsed: Parsed,
  env: Environment,
  problems: Problems,
  expect: Expect,
): UpstreamCredentials | 'embedded-sandbox' {
  const names = Object.keys(upstreamNeeds) as (keyof typeof upstreamNeeds)[];
  if (names.every((name) => parsed[name] === undefined && !problems.has(name))) return 'embedded-sandbox';
  for (const name of names) expect(name, parsed[name] !== undefined, upstreamNeeds[name]);
  return {
    baseUrl: parsed.UPSTREAM_BASE_URL ?? '',
    clientId: parsed.UPSTREAM_CLIENT_ID ?? '',
    clientSecret: parsed.UPSTREAM_CLIENT_SECRET ?? new Secret(''),
    clientSecretFile: env['UPSTREAM_CLIENT_SECRET_FILE'] || undefined,
  };
}

function authOf(parsed: Parsed, isSandbox: boolean, expect: Expect) {
  const { AUTH_JWKS_URL: jwksUrls, AUTH_ISSUER: issuers = [], AUTH_AUDIENCE: audiences = [] } = parsed;
  const isUnset = jwksUrls === undefined && issuers.length === 0;
  const mode = parsed.AUTH_MODE ?? (isSandbox && isUnset ? 'developer' : 'jwt');
  const developer = 'AUTH_MODE=developer is for the embedded sandbox: expected jwt or disabled with UPSTREAM_BASE_URL';
  expect('AUTH_MODE', mode !== 'developer' || isSandbox, developer);
  if (mode === 'jwt') {
    const why = 'is missing: expected with AUTH_MODE=jwt (AUTH_MODE=disabled serves anybody)';
    expect('AUTH_ISSUER', issuers.length > 0, `AUTH_ISSUER ${why}`);
    expect('AUTH_AUDIENCE', audiences.length > 0, `AUTH_AUDIENCE ${why}`);
    const pairs = 'AUTH_JWKS_URL and AUTH_ISSUER must have the same number of entries: they pair one by one';
    const isPaired = jwksUrls === undefined || issuers.length === 0 || jwksUrls.length === issuers.length;
    expect('AUTH_JWKS_URL', isPaired, pairs);
    const discovered =
      'AUTH_ISSUER must be http: or https: URLs without query or fragment, as discovery needs them; expected AUTH_JWKS_URL otherwise';
    const isAddress = (issuer: string) => webUrl.safeParse(issuer).success;
    expect('AUTH_ISSUER', jwksUrls !== undefined || issuers.every(isAddress), discovered);
  }
  expect('AUTH_ISSUER', new Set(issuers).size === issuers.length, 'AUTH_ISSUER must not name an issuer twice');
  return {
    mode,
    issuers: issuers.map((issuer, index) => ({
      issuer,
      jwksUrl: jwksUrls?.[index],
      audience: audienceOf(issuer, issuers, audiences, expect),
    })),
    rights: {
      scopesClaims: parsed.AUTH_SCOPES_CLAIM,
      scopesMap: parsed.AUTH_SCOPES_MAP ?? new Map<string, Scope[]>(),
      taxpayersClaim: parsed.AUTH_TAXPAYERS_CLAIM,
    },
    tokenTypes: parsed.AUTH_TOKEN_TYPES.map((type) => tokenType(type) ?? type),
    keysMaxAgeMs: parsed.AUTH_KEYS_MAX_AGE_SECONDS * 1000,
  };
}

/** An entry of AUTH_AUDIENCE applies to all issuers, or, written as `issuer audience`, to that issuer alone. */
function audienceOf(issuer: string, issuers: readonly string[], entries: readonly string[], expect: Expect): string[] {
  const pairs = entries.map((entry) => entry.split(/ +/));
  const isKnown = ([first = '', second, more]: string[]) => second === undefined || (issuers.includes(first) && !more);
  const form = 'AUTH_AUDIENCE must be audiences, or one of AUTH_ISSUER, a space and its audience, separated by commas';
  expect('AUTH_AUDIENCE', pairs.every(isKnown), form);
  const own = pairs.flatMap(([first = '', second]) => (second === undefined ? first : first === issuer ? second : []));
  expect(
    'AUTH_AUDIENCE',
    entries.length === 0 || own.length > 0,
    'AUTH_AUDIENCE must name one for each of AUTH_ISSUER',
  );
  return own;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
