import proxyaddr from 'proxy-addr';
import * as z from 'zod';
import { allScopes } from '../auth/caller.js';
import { Secret } from './secret.js';
import { hasControlCharacters } from './watchFile.js';

/** One environment variable: what it accepts, and its default. Its meaning is in `settingMeanings.ts`. */
export interface Setting<T = unknown> {
  readonly schema: z.ZodType<T>;
  /** The default, as the text of a value; for `optional` settings, words that describe it. */
  readonly fallback: string;
  readonly optional: boolean;
  readonly example: string;
  /** The value is confidential: it may also come from a file named by `<NAME>_FILE`, and it is never echoed. */
  readonly secret: boolean;
}

function setting<T>(schema: z.ZodType<T>, fallback: string, example: string, secret?: 'secret'): Setting<T> {
  return { schema, fallback, optional: false, example, secret: secret === 'secret' };
}

/** A setting that may have no value, or whose default depends on other settings; `words` describe the default. */
function optional<T>(schema: z.ZodType<T>, words: string, example: string, secret?: 'secret'): Setting<T | undefined> {
  return { ...setting<T | undefined>(schema.optional(), words, example, secret), optional: true };
}

// What the text of a variable may be; the message of a failed check is shown to the operator.

const control = 'must not contain line breaks, tabs or other control characters';
const text = z.string().refine((value) => !hasControlCharacters(value), { error: control });
const fitting = (fits: (text: string) => boolean, error: string) => text.refine(fits, { error });

const integer = (min: number, max: number) => {
  const fits = (digits: string) => /^\d+$/.test(digits) && Number(digits) >= min && Number(digits) <= max;
  return fitting(fits, `must be a whole number from ${min} to ${max}`).transform(Number);
};

const listenAddress = fitting((host) => !host.startsWith('['), 'must be an IPv6 address without brackets, such as ::1');

const isShare = (number: string) => /^(0?\.\d+|[01](\.0+)?)$/.test(number);
const share = fitting(
  (number) => isShare(number) && Number(number) > 0,
  'must be a number above 0, and at most 1',
).transform(Number);
const shareOrNone = fitting(isShare, 'must be a number from 0 to 1').transform(Number);

/** `URL` alone accepts a lone `?` or `#`, blanks, and missing or reversed slashes. The scheme is changed to lower case. */
const webUrlForm = /^https?:\/\/[^\s\\/?#@]+(\/[^\s\\?#]*)?$/i;
export const webUrl = fitting(
  (address) => webUrlForm.test(address) && URL.canParse(address),
  'must be an absolute http: or https: URL without user name, query, fragment, blanks or backslashes',
).transform((address) => address.replace(/^https?:/i, (scheme) => scheme.toLowerCase()));

// Lists and JSON may be written on several lines: only what they hold is checked.
const list = (item: z.ZodType<string, string>) =>
  z
    .string()
    .transform((items) => items.split(',').flatMap((part) => part.trim() || []))
    .pipe(z.array(item).min(1, 'must name at least one'));

const scope = z.enum(allScopes);
const mapOfScopes = z.record(z.string(), z.array(scope).or(scope.transform((one) => [one])));
const scopesMap = z.string().transform((json, context) => {
  try {
    return new Map(Object.entries(mapOfScopes.parse(JSON.parse(json))));
  } catch {
    const expected =
      'a JSON object such as {"Taxpayers.Read":"taxpayers:read"}, each value a scope or a list of scopes';
    context.addIssue({ code: 'custom', message: `must be ${expected}; the scopes are ${allScopes.join(', ')}` });
    return z.NEVER;
  }
});

/** An app's own scheme, as in `capacitor://localhost`; `URL` gives its origin as `null`, browsers send it as it is. */
const appOrigin = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+$/;
const origin = fitting(
  (address) => !address.includes('*'),
  'must name each origin: * is no pattern, and would never match',
).refine((address) => appOrigin.test(address) || (URL.canParse(address) && new URL(address).origin === address), {
  error:
    'must be origins as browsers send them, such as https://app.example or capacitor://localhost, without a slash at the end, separated by commas',
});

/** As in curl, a proxy without a scheme is an http: one. */
const proxy = text
  .transform((address) => (address.includes('://') ? address : `http://${address}`))
  .pipe(
    fitting(
      isProxy,
      'must be the http: or https: URL of a proxy, such as http://user:password@proxy.example:3128, percent-encoded',
    ),
  );

function isProxy(address: string): boolean {
  try {
    const { protocol, hostname, pathname, search, hash, username, password } = new URL(address);
    decodeURIComponent(username + password);
    return ['http:', 'https:'].includes(protocol) && hostname !== '' && `${pathname}${search}${hash}` === '/';
  } catch {
    return false;
  }
}

/** As in curl: separated by commas or spaces. */
const proxyExceptions = z
  .string()
  .transform((entries) => entries.split(/[\s,]+/).filter(Boolean))
  .pipe(
    z.array(
      fitting(
        (entry) => !entry.includes('/'),
        'must be host names and addresses, separated by commas; ranges such as 10.0.0.0/8 are not supported',
      ),
    ),
  );

const isAddressRange = (text: string) => {
  try {
    return proxyaddr.compile(text) !== undefined;
  } catch {
    return false;
  }
};
const addressRange = fitting(isAddressRange, 'must be addresses and ranges such as 10.0.0.0/8, separated by commas');

const flag = z.enum(['true', 'false'], { error: 'must be true or false' }).transform((word) => word === 'true');

/** For OpenTelemetry's own flags, which may be in upper or lower case. */
const flagInAnyCase = z
  .string()
  .transform((word) => word.toLowerCase())
  .pipe(flag);

const secret = (schema: z.ZodType<string>) => schema.transform((confidential) => new Secret(confidential));

/** Several, separated by commas; a file may hold one a line. */
const secrets = (item: z.ZodType<string, string>) =>
  z
    .string()
    .transform((values) => values.split(/[,\n]/).flatMap((part) => part.trim() || []))
    .pipe(z.array(item).min(1, 'must hold at least one'))
    .transform((values) => values.map((confidential) => new Secret(confidential)));

const base64Key = fitting(
  (key) => /^[A-Za-z0-9+/_-]+={0,2}$/.test(key) && Buffer.from(key, 'base64').length === 32,
  'must be 32 bytes in base64',
);

/** What an Authorization header can carry: a token, or a scheme and a token (RFC 9110 section 11.4). */
export const decisionTokenForm = /^[\x21-\x7e]+( [\x21-\x7e]+)?$/;

/** Shortest secret that may be shared with a router, in characters. */
export const minRouterSecretLength = 16;
const routerSecret = text.min(minRouterSecretLength, `must have at least ${minRouterSecretLength} characters`);

const decisionToken = fitting(
  (token) => decisionTokenForm.test(token),
  'must be a token, or a scheme and a token such as "Basic dXNlcjpwYXNz", in printable ASCII',
);

/**
 * Every setting of the gateway, in the order of the documentation. `config.ts` parses the environment by this table and
 * `docs/configuration.md` is printed from it, so neither can know a setting the other does not.
 */
export const settings = {
  PORT: setting(integer(0, 65535), '4000', '8080'),
  HOST: optional(listenAddress, '127.0.0.1 with the embedded sandbox, 0.0.0.0 with UPSTREAM_BASE_URL', '0.0.0.0'),
  DRAIN_TIMEOUT_MS: setting(integer(0, 600_000), '10000', '25000'),
  TLS_CERT_FILE: optional(text, 'none (plain HTTP)', '/run/tls/tls.crt'),
  TLS_KEY_FILE: optional(text, 'none (plain HTTP)', '/run/tls/tls.key'),
  TLS_CLIENT_CA_FILE: optional(text, 'none (no client certificates)', '/run/tls/clients.crt'),
  TRUSTED_PROXIES: optional(list(addressRange), 'none (the address of the connection is used)', '10.0.0.0/8,fd00::/8'),
  HTTPS_PROXY: optional(secret(proxy), 'none (direct calls)', 'http://user:password@proxy.example:3128', 'secret'),
  HTTP_PROXY: optional(secret(proxy), 'none (direct calls)', 'http://user:password@proxy.example:3128', 'secret'),
  NO_PROXY: optional(proxyExceptions, 'none (loopback addresses only)', 'internal.example,192.0.2.7'),
  LOG_LEVEL: setting(
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'must be one of fatal, error, warn, info, debug, trace, silent',
    }),
    'info',
    'debug',
  ),
  LOG_OPERATIONS: setting(
    z.enum(['notable', 'all', 'none'], { error: 'must be notable, all or none' }),
    'notable',
    'all',
  ),
  LOG_SLOW_MS: setting(integer(1, 3_600_000), '1000', '500'),
  AUDIT: setting(z.enum(['decisions', 'all'], { error: 'must be decisions or all' }), 'decisions', 'all'),

  UPSTREAM_BASE_URL: optional(webUrl, 'none (the embedded sandbox stands in for it)', 'https://api.service.example/v1'),
  UPSTREAM_CLIENT_ID: optional(
    text.refine((id) => !id.includes(':'), 'must not contain a colon'),
    'required with UPSTREAM_BASE_URL',
    'acme',
  ),
  UPSTREAM_CLIENT_SECRET: optional(secret(text), 'required with UPSTREAM_BASE_URL', 'change-me', 'secret'),
  UPSTREAM_CA_FILE: optional(text, 'none (the public authorities)', '/run/tls/service-ca.crt'),
  UPSTREAM_CERT_FILE: optional(text, 'none (no certificate is presented)', '/run/tls/client.crt'),
  UPSTREAM_KEY_FILE: optional(text, 'none (no certificate is presented)', '/run/tls/client.key'),
  UPSTREAM_API_VERSION: setting(
    text.regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters'),
    '2024-01-01',
    '2024-01-01',
  ),
  UPSTREAM_TIMEOUT_MS: setting(integer(1, 600_000), '5000', '2000'),
  UPSTREAM_DEADLINE_MS: setting(integer(1, 600_000), '10000', '5000'),
  BREAKER_RESET_MS: setting(integer(1, 3_600_000), '10000', '30000'),
  PROVIDERS_FILE: optional(text, 'none (the built-in values)', './providers.json'),

  CACHE_URL: optional(
    text
      .regex(
        /^(memory:|file:.+|rediss?(\+sentinel|\+cluster)?:\/\/.+)$/,
        'must be memory:, file:<directory>, redis://…, rediss://…, redis+sentinel://… or redis+cluster://…',
      )
      // No host is meant after it, and no shell replaces the tilde: both would become directories of another name.
      .regex(/^(?!file:(\/\/|~))/, 'must be file: and a directory without // or ~, such as file:/var/lib/gateway'),
    'file:.taxpayer-gateway/cache; memory: with the embedded sandbox',
    'redis://cache:6379',
    'secret',
  ),
  CACHE_ENCRYPTION_KEY: optional(
    secrets(base64Key),
    'derived from UPSTREAM_CLIENT_SECRET',
    'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
    'secret',
  ),
  CACHE_MAX_ENTRIES: setting(integer(1, 10_000_000), '100000', '20000'),
  TOKEN_FRESH_SHARE: setting(shareOrNone, '0.1', '0.05'),
  TOKEN_FRESH_MIN_SECONDS: setting(integer(1, 2_592_000), '60', '120'),
  TOKEN_FRESH_MAX_SECONDS: setting(integer(1, 2_592_000), '86400', '14400'),
  TOKEN_FRESH_SECONDS: optional(integer(1, 2_592_000), 'none (TOKEN_FRESH_SHARE applies)', '900'),
  STORE_TTL_DAYS: setting(integer(1, 3650), '30', '7'),
  TOKEN_BUDGET_PER_HOUR: setting(integer(0, 100_000_000), '600', '100'),
  TOKEN_BUDGET_CALLER_SHARE: setting(share, '0.25', '1'),
  TOKEN_BUDGET_WATCH_SHARE: setting(share, '0.5', '0.25'),
  JOB_POLL_MIN_MS: setting(integer(10, 3_600_000), '1000', '2000'),
  JOB_POLL_MAX_MS: setting(integer(10, 3_600_000), '30000', '60000'),
  JOB_WATCH_MAX_SECONDS: setting(integer(1, 604_800), '3600', '900'),

  AUTH_MODE: optional(
    z.enum(['jwt', 'developer', 'disabled'], { error: 'must be jwt, developer or disabled' }),
    'developer with the embedded sandbox and no AUTH_ISSUER, otherwise jwt',
    'jwt',
  ),
  AUTH_ISSUER: optional(list(text), 'required with AUTH_MODE=jwt', 'https://id.example/'),
  AUTH_JWKS_URL: optional(list(webUrl), "found in the issuer's metadata", 'https://id.example/.well-known/jwks.json'),
  AUTH_AUDIENCE: optional(list(text), 'required with AUTH_MODE=jwt', 'taxpayer-gateway'),
  AUTH_TOKEN_TYPES: setting(list(text), 'JWT,at+jwt', 'at+jwt'),
  AUTH_KEYS_MAX_AGE_SECONDS: setting(integer(60, 31_536_000), '86400', '14400'),
  AUTH_SCOPES_CLAIM: setting(list(text), 'scope,scp', 'realm_access.roles'),
  AUTH_SCOPES_MAP: optional(scopesMap, 'none (the values are scopes)', '{"Taxpayers.Read":"taxpayers:read"}'),
  AUTH_TAXPAYERS_CLAIM: setting(text, 'taxpayer_ids', 'https://example.com/taxpayers'),
  AUTH_DECISION_URL: optional(webUrl, 'none (the token alone says which taxpayers)', 'https://decisions.example'),
  AUTH_DECISION_TOKEN: optional(secret(decisionToken), 'none (no Authorization header)', 'change-me', 'secret'),
  AUTH_DECISION_CLAIMS: optional(list(text), 'none (only subject and issuer are sent)', 'tenant,groups'),
  AUTH_DECISION_TTL_SECONDS: setting(integer(1, 3600), '30', '10'),
  FEDERATION_SHARED_SECRET: optional(
    secret(routerSecret),
    'none (_service and _entities answer any authenticated caller)',
    'a-long-random-text',
    'secret',
  ),
  FEDERATION_SHARED_SECRET_PREVIOUS: optional(secret(routerSecret), 'none', 'a-long-random-text', 'secret'),
  CORS_ORIGINS: optional(list(origin), 'Apollo Sandbox; none with NODE_ENV=production', 'https://app.example'),
  INTROSPECTION: optional(flag, 'false with NODE_ENV=production, otherwise true', 'true'),
  TRUSTED_DOCUMENTS_FILE: optional(list(text), 'none (any document may run)', './persisted-query-manifest.json'),
  TRUSTED_DOCUMENTS_MODE: optional(
    z.enum(['enforce', 'report'], { error: 'must be enforce or report' }),
    'enforce, if TRUSTED_DOCUMENTS_FILE is set',
    'report',
  ),
  RATE_LIMIT_PER_MINUTE: optional(integer(0, 100_000_000), '1200 with AUTH_MODE=jwt, otherwise 0 (no limit)', '600'),
  MAX_BODY_BYTES: setting(integer(1, 104_857_600), '262144', '65536'),
  MAX_ANSWER_BYTES: setting(integer(1024, 1_073_741_824), '8388608', '2097152'),
  MAX_DEPTH: setting(integer(1, 1000), '12', '8'),
  MAX_ALIASES: setting(integer(0, 10_000), '60', '30'),
  MAX_TOKENS: setting(integer(1, 100_000), '2000', '1000'),
  MAX_DIRECTIVES: setting(integer(0, 10_000), '50', '20'),
  MAX_ROOT_FIELDS: setting(integer(1, 10_000), '60', '20'),
  MAX_MUTATION_FIELDS: setting(integer(1, 10_000), '5', '1'),
  MAX_REPRESENTATIONS: setting(integer(1, 100_000), '200', '100'),
  MAX_METADATA_DEPTH: setting(integer(1, 1000), '20', '10'),
  MAX_ID_LENGTH: setting(integer(1, 4096), '256', '64'),
  MAX_RESPONSE_BYTES: setting(integer(1, 104_857_600), '1048576', '262144'),
  MAX_CONNECTIONS: setting(integer(1, 1_000_000), '10000', '2000'),
  MAX_SUBSCRIPTIONS: setting(integer(1, 100_000), '100', '20'),

  METRICS_PORT: optional(integer(1, 65535), 'none (/metrics is on PORT)', '9464'),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(webUrl, 'none (no tracing)', 'http://collector:4318'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optional(
    webUrl,
    '/v1/traces under OTEL_EXPORTER_OTLP_ENDPOINT',
    'https://collector.example/v1/traces',
  ),
  OTEL_EXPORTER_OTLP_PROTOCOL: optional(text, 'http/json', 'http/protobuf'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: optional(text, 'the value of OTEL_EXPORTER_OTLP_PROTOCOL', 'http/protobuf'),
  OTEL_SDK_DISABLED: optional(flagInAnyCase, 'false', 'true'),
  NODE_ENV: setting(text, 'development', 'production'),
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof settings;

/** The parsed values of all settings. */
export type Parsed = { readonly [Name in SettingName]: z.output<(typeof settings)[Name]['schema']> };

/** Unless `isSo`, records `line` as the problem of setting `name`; an earlier problem of that setting stays. */
export type Expect = (name: SettingName, isSo: boolean, line: string) => void;
