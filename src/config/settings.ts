import type * as z from 'zod';
import {
  addressRange,
  base64Key,
  baseUrl,
  decisionToken,
  type Form,
  file,
  flag,
  integer,
  keySetUrl,
  list,
  oneOf,
  origin,
  proxy,
  proxyException,
  routerSecrets,
  scopesMap,
  share,
  storeUrl,
  text,
  webUrl,
} from './forms.js';
import { Secret } from './Secret.js';

/** One environment variable. */
export interface Setting<T = unknown> {
  /** Of an unset variable, it gives the default, or undefined. */
  readonly schema: z.ZodType<T, string | undefined>;
  /** The default, as the text of a value or in words. */
  readonly fallback: string;
  /** A value, as text; empty where the default is one. */
  readonly example: string;
  /** For the documentation. */
  readonly meaning: string;
  /** The value is confidential: it may also come from a file named by `<NAME>_FILE`, and it is never echoed. */
  readonly secret: boolean;
}

function setting<T>(form: Form<T>, fallback: string, meaning: string): Setting<T> {
  return { schema: form.prefault(fallback), fallback, example: '', meaning, secret: false };
}

/** A setting that may have no value, or whose default depends on other settings; `words` describe the default. */
function optional<T>(form: Form<T>, words: string, example: string, meaning: string): Setting<T | undefined> {
  return { schema: form.optional(), fallback: words, example, meaning, secret: false };
}

function secret<T>(form: Form<T>, words: string, example: string, meaning: string): Setting<T | undefined> {
  return { ...optional(form, words, example, meaning), secret: true };
}

/** The default of RATE_LIMIT_PER_MINUTE for callers with a token. */
export const rateLimitPerMinute = 1200;

const hidden = (form: Form<string>) => form.transform((one) => new Secret(one));

/**
 * Every setting of the gateway, in the order of the documentation. `config.ts` parses the environment by this table and
 * `docs/configuration.md` is printed from it, so neither can know a setting the other does not.
 */
// biome-ignore format: a row, and what it means
const own = {
  PORT: setting(integer(0, 65535), '4000',
    'Port to listen on; 0 picks a free one. Serves every path, except /metrics when METRICS_PORT is set.'),
  HOST: optional(text, '127.0.0.1 with the embedded sandbox, 0.0.0.0 with UPSTREAM_BASE_URL', '0.0.0.0',
    'Address to listen on; :: for all of IPv6 and IPv4, 0.0.0.0 for IPv4 alone. IPv6 addresses have no brackets. With AUTH_MODE=developer it must be a loopback address.'),
  DRAIN_TIMEOUT_MS: setting(integer(0, 600_000), '10000',
    'How long requests in flight may take to finish after SIGTERM, in milliseconds. With CACHE_URL=file:…, a new process waits as long for the one that still uses the directory.'),
  TLS_CERT_FILE: optional(file, 'none (plain HTTP)', '/run/tls/tls.crt',
    'PEM certificate chain to serve HTTPS with, the own certificate first; needs TLS_KEY_FILE. Reloaded when the file changes.'),
  TLS_KEY_FILE: optional(file, 'none (plain HTTP)', '/run/tls/tls.key',
    'PEM private key of TLS_CERT_FILE, without a passphrase. Reloaded when the file changes.'),
  TLS_CLIENT_CA_FILE: optional(file, 'none (no client certificates)', '/run/tls/clients.crt',
    'Turns on mutual TLS: clients must present a certificate issued by an authority in this PEM file, or their handshake is refused. Needs METRICS_PORT, for probes. Reloaded when the file changes.'),
  TRUSTED_PROXIES: optional(list(addressRange), 'none (the address of the connection is used)', '10.0.0.0/8,fd00::/8',
    "Addresses and ranges of the proxies in front of the gateway, separated by commas. Their X-Forwarded-For header then gives the caller's address for rate limits and audit lines. A proxy that sets only Forwarded (RFC 7239) must not be listed."),
  LOG_LEVEL: setting(oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info',
    'Least severe level to log; there are no lines below info. Lines of operations have level info. Audit lines are logged at every level but silent.'),
  LOG_OPERATIONS: setting(oneOf('notable', 'all', 'none'), 'notable',
    'Which operations get a log line when they end: all, none or notable. Notable operations have an error, take longer than a second, are mutations or called the token endpoint.'),
  AUDIT: setting(oneOf('decisions', 'all'), 'decisions',
    'Which events get an audit line. decisions: refused callers, access tokens shown, links created and taxpayers erased. all: also every token record and job status shown.'),
  UPSTREAM_BASE_URL: optional(baseUrl, 'none (the embedded sandbox stands in for it)', 'https://api.service.example/v1',
    'Base URL of the taxpayer-authorization service, with or without a slash at the end.'),
  UPSTREAM_CLIENT_ID: optional(text.refine((id) => !id.includes(':'), 'must not contain a colon'), 'required with UPSTREAM_BASE_URL', 'acme',
    'Client id issued by the service.'),
  UPSTREAM_CLIENT_SECRET: secret(hidden(text), 'required with UPSTREAM_BASE_URL', 'change-me',
    'Client secret issued by the service. From a file, it is reloaded when the file changes.'),
  UPSTREAM_CA_FILE: optional(file, 'none (the public authorities)', '/run/tls/service-ca.crt',
    "PEM file of the certificate authorities trusted for the service, instead of the public ones. Set it when a private authority issued the service's certificate. Reloaded when the file changes."),
  UPSTREAM_CERT_FILE: optional(file, 'none (no certificate is presented)', '/run/tls/client.crt',
    'PEM certificate chain to present to the service (mutual TLS), the own certificate first. Reloaded when the file changes.'),
  UPSTREAM_KEY_FILE: optional(file, 'none (no certificate is presented)', '/run/tls/client.key',
    'PEM private key of UPSTREAM_CERT_FILE, without a passphrase. Reloaded when the file changes.'),
  UPSTREAM_API_VERSION: setting(text.regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters'), '2024-01-01',
    'Service-API-Version header to send on reads of token records and job statuses.'),
  UPSTREAM_TIMEOUT_MS: setting(integer(1, 600_000), '5000',
    'Time limit for one try of a call to the service, in milliseconds.'),
  UPSTREAM_DEADLINE_MS: setting(integer(1, 600_000), '10000',
    'Time limit for a call to the service with all its retries and the pauses between them, in milliseconds. It also limits a try with a longer UPSTREAM_TIMEOUT_MS.'),
  BREAKER_RESET_MS: setting(integer(1, 3_600_000), '10000',
    'How long the circuit breaker of a failing endpoint stays open before one call tries the endpoint again, in milliseconds. Also the longest pause before a token record whose reads fail is read again.'),
  PROVIDERS_FILE: optional(file, 'none (the built-in values)', './providers.json',
    'JSON list of { name, value, description } that replaces the values of the enum Provider: name in the schema, value at the service. Set it to name tax-preparation products, for which the built-in values are placeholders.'),
  CACHE_URL: secret(storeUrl, 'file:.taxpayer-gateway/cache; memory: with the embedded sandbox', 'redis://cache:6379',
    'Store of token records, job statuses, leases and counters. For one process: file:<directory> (relative to the working directory, or absolute as in file:/var/lib/gateway), which survives restarts, or memory:, which does not. For a fleet: redis://user:password@host:6379/0 (both percent-encoded), redis+sentinel://host:26379,host:26379/group (for a password of the sentinels themselves, with ?sentinelUsername=…&sentinelPassword=…) or redis+cluster://host:6379,host:6379. With rediss in place of redis, connections use TLS.'),
  CACHE_ENCRYPTION_KEY: secret(list(hidden(base64Key)), 'derived from UPSTREAM_CLIENT_SECRET', 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
    'Key that encrypts stored entries: 32 bytes in base64, the same in the whole fleet. Set it in production, so that the cache survives a change of the client secret. Several keys are separated by commas, or by lines in a file: the first encrypts, each decrypts, the last gives entries their names. To rotate, put the new key in front. Changing the last key, also by another order, costs one token call per taxpayer, and forgets idempotency keys.'),
  TOKEN_FRESH_SHARE: setting(share, '0.1',
    'How long a cached token record is fresh, as a share of the time it had been unchanged when it was read: with 0.1, a record unchanged for 10 hours is shown for 1 hour without a call to the service.'),
  TOKEN_FRESH_MIN_SECONDS: setting(integer(1, 2_592_000), '60',
    'Shortest time for which a cached token record is fresh, in seconds.'),
  TOKEN_FRESH_MAX_SECONDS: setting(integer(1, 2_592_000), '86400',
    'Longest time for which a cached token record is fresh, in seconds. A value below the shortest time counts as the shortest time. Records in the final statuses REJECTED and COMPLETED are fresh for this long.'),
  TOKEN_FRESH_SECONDS: optional(integer(1, 2_592_000), 'none (TOKEN_FRESH_SHARE applies)', '900',
    'Fixed time for which a cached token record is fresh, in seconds; in the final statuses REJECTED and COMPLETED, at least TOKEN_FRESH_MAX_SECONDS. Takes the place of TOKEN_FRESH_SHARE and TOKEN_FRESH_MIN_SECONDS.'),
  STORE_TTL_DAYS: setting(integer(1, 3650), '30',
    'How long data about a taxpayer is kept, in store and memory, after it was read, in days. A change applies only to data that is stored afterwards.'),
  TOKEN_BUDGET_PER_HOUR: setting(integer(0, 100_000_000), '600',
    'Token budget: the calls that the whole fleet may make to the token endpoint in an hour, which begins with its first call. 0 means no limit.'),
  TOKEN_BUDGET_CALLER_SHARE: setting(share, '0.25',
    'Share of the token budget that one caller may use, at least one call. With 1, one caller may use all of it, as callers without a token always may.'),
  JOB_POLL_MIN_MS: setting(integer(10, 3_600_000), '1000',
    'First interval between two polls of a watched refresh job, in milliseconds, with 10 % jitter.'),
  JOB_POLL_MAX_MS: setting(integer(10, 3_600_000), '30000',
    'Longest interval between two polls of a watched refresh job, in milliseconds, with 10 % jitter. A value below JOB_POLL_MIN_MS counts as JOB_POLL_MIN_MS.'),
  AUTH_MODE: optional(oneOf('jwt', 'developer', 'disabled'), 'developer with the embedded sandbox and no AUTH_ISSUER, otherwise jwt', 'jwt',
    'How callers are authenticated. jwt: by an access token. developer: a caller without a token is the local developer, with every scope (embedded sandbox only). disabled: not at all; anybody may read and create everything.'),
  AUTH_ISSUER: optional(list(text), 'required with AUTH_MODE=jwt', 'https://id.example/',
    'Accepted iss claims of access tokens, separated by commas. Compared exactly: a slash at the end counts. Without AUTH_JWKS_URL, the key set of each issuer is found by OpenID Connect discovery or RFC 8414.'),
  AUTH_JWKS_URL: optional(list(keySetUrl), "found in the issuer's metadata", 'https://id.example/.well-known/jwks.json',
    'URLs of the key sets (JWKS) of the issuers in AUTH_ISSUER, one for each in the same order, separated by commas. Set it when an issuer publishes no metadata at its own address.'),
  AUTH_AUDIENCE: optional(list(text), 'required with AUTH_MODE=jwt', 'taxpayer-gateway',
    'Accepted aud claims of access tokens, separated by commas. Each is accepted from every issuer in AUTH_ISSUER.'),
  AUTH_TOKEN_TYPES: setting(list(text), 'JWT,at+jwt',
    'Accepted typ headers of access tokens, separated by commas; a token without one counts as JWT. Set at+jwt alone to refuse every token that does not say it is an access token (RFC 9068).'),
  AUTH_KEYS_MAX_AGE_SECONDS: setting(integer(60, 31_536_000), '86400',
    'How long the last key set is used while the identity provider cannot be reached, in seconds. After that no token is accepted until the key set can be read again.'),
  AUTH_SCOPES_CLAIM: setting(list(text), 'scope,scp',
    "Claims that may hold the caller's scopes, separated by commas. The first of them that is in the token is used. A nested claim is named by its path, such as realm_access.roles."),
  AUTH_SCOPES_MAP: setting(scopesMap, '{}',
    'JSON object that maps values of the scopes claim (AUTH_SCOPES_CLAIM) to scopes of the gateway, each to one or to a list, such as {"Taxpayers.Read":"taxpayers:read"}. A value that is not in the object counts as a scope itself.'),
  AUTH_TAXPAYERS_CLAIM: setting(text, 'taxpayer_ids',
    'Claim with the ids of the taxpayers a caller may see. A nested claim is named by its path.'),
  AUTH_DECISION_URL: optional(baseUrl, 'none (the token alone says which taxpayers)', 'https://decisions.example',
    'Base URL of an OpenID AuthZEN decision point. It is asked, under /access/v1, whether a caller may see a taxpayer that the token does not list.'),
  AUTH_DECISION_TOKEN: secret(hidden(decisionToken), 'none (no Authorization header)', 'change-me',
    'Credential for the decision point: a bearer token, or a scheme and a token. From a file, it is reloaded when the file changes.'),
  AUTH_DECISION_CLAIMS: optional(list(text), 'none (only subject and issuer are sent)', 'tenant,groups',
    "Claims of the caller's token that are sent to the decision point, separated by commas. A nested claim is named by its path, such as realm_access.roles."),
  AUTH_DECISION_TTL_SECONDS: setting(integer(1, 3600), '30',
    'How long a decision of the decision point is cached, in seconds; a refusal for at most 5. A withdrawn right ends within this time.'),
  FEDERATION_SHARED_SECRET: secret(hidden(routerSecrets), 'none (_service and _entities answer any authenticated caller)', 'a-long-random-text',
    'Secret that a router sends in the header x-gateway-router-secret. When set, _service and _entities answer only the router. Several secrets are separated by commas, or by lines in a file: each is accepted, for rotation. From a file, they are reloaded when the file changes.'),
  CORS_ORIGINS: optional(list(origin), 'Apollo Sandbox; none with NODE_ENV=production', 'https://app.example',
    'Origins of web pages that may call the gateway and open streams (CORS), separated by commas, exactly as browsers send them. Origins of apps and browser extensions have a scheme of their own, such as capacitor://localhost. There are no wildcards. In developer mode, every page of this machine may call as well.'),
  INTROSPECTION: optional(flag, 'false with NODE_ENV=production, otherwise true', 'true',
    'true allows introspection and serves the explorers at / and /graphiql. With false, error messages do not reveal the schema, either.'),
  TRUSTED_DOCUMENTS_FILE: optional(list(file), 'none (any document may run)', './persisted-query-manifest.json',
    'Files, or folders of .json files, separated by commas, that list the only documents that may run, sent by id or as text. Each is a persisted-query manifest of Apollo or { hash: text } as GraphQL Code Generator and Relay write it. Reloaded when they change. While a new list is unusable, the previous lists stay in use. A router that presents the shared secret may send any document.'),
  TRUSTED_DOCUMENTS_MODE: optional(oneOf('enforce', 'report'), 'enforce, if TRUSTED_DOCUMENTS_FILE is set', 'report',
    'enforce refuses documents that TRUSTED_DOCUMENTS_FILE does not list; report lets them run, and logs each by hash, client and operation.'),
  RATE_LIMIT_PER_MINUTE: optional(integer(0, 100_000_000), `${rateLimitPerMinute} with AUTH_MODE=jwt, otherwise 0 (no limit)`, '600',
    'Rate limit: the root fields that one caller may request per minute from each process. An operation with more root fields is always refused. 0 means no limit. Callers without a token are distinguished by their address.'),
  MAX_BODY_BYTES: setting(integer(1, 16_777_216), '262144',
    'Largest request body or WebSocket message, in bytes. Whatever the value, a body above a 256th of the heap from a caller with a token is refused (RATE_LIMITED). With a value above a 16th of the heap, so are bodies without a Content-Length and WebSocket messages in parts.'),
  MAX_DEPTH: setting(integer(1, 500), '12',
    'Deepest nesting of fields in an operation, in levels.'),
  MAX_ALIASES: setting(integer(0, 5000), '60',
    'Most aliases in an operation; those of a fragment count each time it is spread.'),
  MAX_TOKENS: setting(integer(1, 100_000), '2000',
    'Most lexical tokens in a document.'),
  MAX_REPRESENTATIONS: setting(integer(1, 2500), '200',
    'Most entities that a router may ask for in all _entities fields of one document together.'),
  MAX_CONNECTIONS: setting(integer(1, 1_000_000), '10000',
    'Most WebSockets and event streams that one process keeps open. Counted separately, also the most subscriptions and waiting queries (waitSeconds), each of which takes about 20 kB of memory. One caller may hold a quarter of each.'),
  MAX_SUBSCRIPTIONS: setting(integer(1, 100_000), '100',
    'Most operations running at once on one WebSocket.'),
  METRICS_PORT: optional(integer(1, 65535), 'none (/metrics is on PORT)', '9464',
    'Separate port, without TLS, for /metrics (then not served on PORT), /health/live and /health/ready. If there is a Service named metrics, Kubernetes sets this variable to an address, unless enableServiceLinks is false.'),
} as const satisfies Record<string, Setting>;

/** Variables of Node.js, curl and OpenTelemetry that mean here what they mean there. */
// biome-ignore format: a row, and what it means
export const standardVariables = {
  HTTPS_PROXY: secret(hidden(proxy), 'none (direct calls)', 'http://user:password@proxy.example:3128',
    'Proxy for calls to https: URLs of the service, the identity provider, the decision point and the trace collector. https_proxy works too, and comes first.'),
  HTTP_PROXY: secret(hidden(proxy), 'none (direct calls)', 'http://user:password@proxy.example:3128',
    'Proxy for calls to http: URLs of the service, the identity provider, the decision point and the trace collector. http_proxy works too, and comes first.'),
  NO_PROXY: optional(list(proxyException), 'none (loopback addresses only)', 'internal.example,192.0.2.7',
    'Host names (each with its subdomains) and addresses to call without a proxy, separated by commas; * means all. Loopback addresses are never called through a proxy. no_proxy works too, and comes first.'),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(baseUrl, 'none (no tracing)', 'http://collector:4318',
    'Base URL of the OpenTelemetry collector. Traces are sent over OTLP/HTTP to /v1/traces under it; see Traces, below.'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optional(webUrl, '/v1/traces under OTEL_EXPORTER_OTLP_ENDPOINT', 'https://collector.example/v1/traces',
    'Full URL to send traces to; replaces OTEL_EXPORTER_OTLP_ENDPOINT.'),
  NODE_ENV: optional(text, 'development', 'production',
    'production turns off introspection, the explorers and CORS for Apollo Sandbox, unless INTROSPECTION or CORS_ORIGINS is set.'),
} as const satisfies Record<string, Setting>;

export const settings = { ...own, ...standardVariables };

export type SettingName = keyof typeof settings;

/** The parsed values of all settings. */
export type Parsed = { readonly [Name in SettingName]: z.output<(typeof settings)[Name]['schema']> };
