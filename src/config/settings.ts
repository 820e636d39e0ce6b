import { z } from 'zod';
import { base64Key, flag, integer, list, origin, routerSecret, share, text, webUrl } from './settingSchemas.js';

/** One environment variable: what it accepts, what it means, and how the documentation shows it. */
export interface Setting<T = unknown> {
  /** Turns the text of the variable into its value; the message of a failed check is shown to the operator. */
  readonly schema: z.ZodType<T>;
  /** What holds when the variable is unset: the text of a value, or words for `optional` ones. */
  readonly fallback: string;
  readonly optional: boolean;
  readonly example: string;
  readonly meaning: string;
  /** The value is confidential: it may also come from a file named by `<NAME>_FILE`, and it is never echoed. */
  readonly secret: boolean;
}

function setting<T>(schema: z.ZodType<T>, fallback: string, example: string, meaning: string, secret?: 'secret') {
  return { schema, fallback, optional: false, example, meaning, secret: secret === 'secret' } satisfies Setting<T>;
}

/** One that may have no value, or whose value depends on other settings; `words` say which. */
function optional<T>(schema: z.ZodType<T>, words: string, example: string, meaning: string, secret?: 'secret') {
  return { ...setting<T | undefined>(schema.optional(), words, example, meaning, secret), optional: true };
}

/**
 * Every setting of the gateway, in the order of the documentation. `config.ts` parses the environment by this table and
 * `docs/configuration.md` is printed from it, so neither can know a setting the other does not.
 */
export const settings = {
  PORT: setting(integer(0, 65535), '4000', '8080', 'Port of every path; 0 picks a free one.'),
  HOST: optional(
    text,
    '127.0.0.1 with the embedded sandbox, 0.0.0.0 with UPSTREAM_BASE_URL',
    '0.0.0.0',
    'Address to listen on. The developer mode of the sandbox accepts loopback addresses only.',
  ),
  WORKERS: setting(integer(1, 64), '1', '2', 'Processes that share the port. A dead one is replaced.'),
  DRAIN_TIMEOUT_MS: setting(
    integer(0, 600_000),
    '10000',
    '25000',
    'How long requests in flight may take to end after SIGTERM, in milliseconds.',
  ),
  TLS_CERT_FILE: optional(
    text,
    'none: plain HTTP',
    '/run/tls/tls.crt',
    'PEM certificate chain; read again when it changes.',
  ),
  TLS_KEY_FILE: optional(text, 'none: plain HTTP', '/run/tls/tls.key', 'PEM private key; read again when it changes.'),
  LOG_LEVEL: setting(
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      error: 'must be one of fatal, error, warn, info, debug, trace, silent',
    }),
    'info',
    'warn',
    'Least severe level that is logged.',
  ),

  UPSTREAM_BASE_URL: optional(
    webUrl,
    'none: the embedded sandbox is served',
    'https://api.service.example/v1',
    'Base address of the taxpayer-authorization service.',
  ),
  UPSTREAM_CLIENT_ID: optional(
    text.refine((id) => !id.includes(':'), 'must not contain a colon'),
    'required with UPSTREAM_BASE_URL',
    'acme',
    'Client id issued by the service.',
  ),
  UPSTREAM_CLIENT_SECRET: optional(
    text,
    'required with UPSTREAM_BASE_URL',
    'change-me',
    'Client secret issued by the service. From a file it is read again when the file changes.',
    'secret',
  ),
  UPSTREAM_API_VERSION: setting(
    text.regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable ASCII characters'),
    '2024-01-01',
    '2024-01-01',
    'Sent as Service-API-Version on the two reading endpoints.',
  ),
  UPSTREAM_TIMEOUT_MS: setting(integer(1, 600_000), '5000', '2000', 'Time for one try of a call, in milliseconds.'),
  UPSTREAM_DEADLINE_MS: setting(
    integer(1, 600_000),
    '10000',
    '5000',
    'Time for a call with all its tries and waits, in milliseconds.',
  ),
  BREAKER_RESET_MS: setting(
    integer(1, 3_600_000),
    '10000',
    '30000',
    'How long an endpoint that kept failing is left alone before one call tries it again, in milliseconds.',
  ),
  PROVIDERS_FILE: optional(
    text,
    'the built-in catalogue',
    './providers.json',
    'JSON list of { name, value, description } that replaces the provider catalogue.',
  ),

  CACHE_URL: setting(
    text.regex(
      /^(memory:|lmdb:.+|rediss?(\+sentinel|\+cluster)?:\/\/.+)$/,
      'must be memory:, lmdb:<directory>, redis://…, rediss://…, redis+sentinel://… or redis+cluster://…',
    ),
    'lmdb:.taxpayer-gateway/cache',
    'redis://cache:6379',
    'Where tokens, job statuses and leases are shared.',
    'secret',
  ),
  CACHE_ENCRYPTION_KEY: optional(
    base64Key,
    'derived from the client secret',
    'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
    'Key of stored entries: 32 bytes in base64.',
    'secret',
  ),
  CACHE_ENCRYPTION_KEY_PREVIOUS: optional(
    base64Key,
    'none',
    'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
    'The key before a rotation: entries it sealed can still be read. Keep it for a day after the last process has the new one.',
    'secret',
  ),
  CACHE_MAX_ENTRIES: setting(
    integer(1, 10_000_000),
    '100000',
    '20000',
    'Token records, and as many job statuses, held in the memory of one process; the least recently used go first, also when either takes a quarter of the heap.',
  ),
  TOKEN_FRESH_SECONDS: setting(
    integer(1, 2_592_000),
    '900',
    '300',
    'Age up to which a token record is shown without asking the service again, in seconds.',
  ),
  TOKEN_BUDGET_PER_HOUR: setting(
    integer(0, 100_000_000),
    '600',
    '100',
    'Calls to the token endpoint per hour for the whole fleet; 0 means no limit.',
  ),
  TOKEN_BUDGET_CALLER_SHARE: setting(
    share,
    '0.25',
    '1',
    'What one caller may take of the token budget that the others have left; 1 lets one caller take all of it.',
  ),
  JOB_POLL_MIN_MS: setting(
    integer(10, 3_600_000),
    '1000',
    '2000',
    'First interval between polls of a watched job, in milliseconds, give or take a tenth.',
  ),
  JOB_POLL_MAX_MS: setting(
    integer(10, 3_600_000),
    '30000',
    '60000',
    'Longest interval between polls of a watched job, in milliseconds, give or take a tenth.',
  ),
  JOB_WATCH_MAX_SECONDS: setting(
    integer(1, 604_800),
    '3600',
    '900',
    'How long one subscription may last before it ends cleanly, in seconds.',
  ),

  AUTH_MODE: optional(
    z.enum(['jwt', 'developer', 'disabled'], { error: 'must be jwt, developer or disabled' }),
    'developer with the embedded sandbox and no AUTH_JWKS_URL, otherwise jwt',
    'jwt',
    'Who may call: bearers of a valid token; a local developer with every scope (sandbox only); anybody.',
  ),
  AUTH_JWKS_URL: optional(
    list(webUrl),
    'required with AUTH_MODE=jwt',
    'https://id.example/.well-known/jwks.json',
    'Key set of the identity provider. Several, separated by commas, pair with AUTH_ISSUER one by one.',
  ),
  AUTH_ISSUER: optional(
    list(text),
    'required with AUTH_MODE=jwt',
    'https://id.example/',
    'The iss claim a token must carry.',
  ),
  AUTH_AUDIENCE: optional(
    list(text),
    'required with AUTH_MODE=jwt',
    'taxpayer-gateway',
    'The aud claim a token must carry; one of several.',
  ),
  AUTH_TAXPAYERS_CLAIM: setting(
    text,
    'taxpayer_ids',
    'https://example.com/taxpayers',
    'Claim that lists the taxpayers a caller may see.',
  ),
  FEDERATION_SHARED_SECRET: optional(
    routerSecret,
    'none: _service and _entities answer any authenticated caller',
    'a-long-random-text',
    'When set, _service, _entities and callback subscriptions answer only to a router that presents it in x-gateway-router-secret. From a file it is read again when the file changes.',
    'secret',
  ),
  FEDERATION_SHARED_SECRET_PREVIOUS: optional(
    routerSecret,
    'none',
    'a-long-random-text',
    'The shared secret before a rotation, still accepted. From a file it is read again when the file changes.',
    'secret',
  ),
  CALLBACK_ORIGINS: optional(
    list(origin),
    'none: callback subscriptions are refused',
    'https://router.example',
    'Origins that callback subscriptions may post to.',
  ),
  CORS_ORIGINS: optional(
    list(origin),
    "none; in development Apollo Sandbox's origin",
    'https://app.example',
    'Browser origins that may call, separated by commas.',
  ),
  INTROSPECTION: optional(
    flag,
    'false when NODE_ENV is production, otherwise true',
    'true',
    'Whether the schema may be introspected; with it come the explorers at / and /graphiql and suggestions in errors.',
  ),
  TRUSTED_DOCUMENTS_FILE: optional(
    text,
    'none: any document may run',
    './persisted-query-manifest.json',
    "Manifest in Apollo's persisted-query format: only its documents may run, named by id or sent whole. A router that presents the shared secret is exempt.",
  ),
  RATE_LIMIT_PER_MINUTE: optional(
    integer(0, 100_000_000),
    '1200 with AUTH_MODE=jwt, otherwise 0',
    '600',
    'Operations per caller and minute over the whole fleet; 0 means no limit. Without authentication callers are told apart by their address.',
  ),
  MAX_BODY_BYTES: setting(integer(1, 104_857_600), '262144', '65536', 'Largest request body, in bytes.'),
  MAX_ANSWER_BYTES: setting(
    integer(1024, 1_073_741_824),
    '8388608',
    '2097152',
    'Largest answer to one operation, in bytes; what would be larger is an error.',
  ),
  MAX_DEPTH: setting(integer(1, 1000), '12', '8', 'Deepest selection of a document.'),
  MAX_ALIASES: setting(integer(0, 10_000), '60', '30', 'Most aliases in a document.'),
  MAX_TOKENS: setting(integer(1, 100_000), '2000', '1000', 'Most lexical tokens in a document.'),
  MAX_DIRECTIVES: setting(integer(0, 10_000), '50', '20', 'Most directives in a document.'),
  MAX_ROOT_FIELDS: setting(
    integer(1, 10_000),
    '60',
    '20',
    'Most root fields an operation may select, fragments included.',
  ),
  MAX_REPRESENTATIONS: setting(
    integer(1, 100_000),
    '200',
    '100',
    'Most representations in all _entities of one document.',
  ),
  MAX_METADATA_DEPTH: setting(
    integer(1, 1000),
    '20',
    '10',
    'Deepest nesting of metadata, sent or received; variables as a whole may have ten levels more.',
  ),
  MAX_ID_LENGTH: setting(
    integer(1, 4096),
    '256',
    '64',
    'Longest taxpayer id, job id or idempotency key, in characters.',
  ),
  MAX_RESPONSE_BYTES: setting(
    integer(1, 104_857_600),
    '1048576',
    '262144',
    'Largest answer of the service, in bytes after decompression.',
  ),
  MAX_CONNECTIONS: setting(
    integer(1, 1_000_000),
    '10000',
    '2000',
    'Most sockets and event streams of one process that are open at once, and most subscriptions and waiting queries; one caller may have a quarter of either.',
  ),
  MAX_SUBSCRIPTIONS: setting(integer(1, 100_000), '100', '20', 'Most operations running at once on one WebSocket.'),

  METRICS_PORT: optional(integer(1, 65535), 'none: /metrics is on PORT', '9464', 'Serve /metrics on this port alone.'),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    webUrl,
    'none: no tracing',
    'http://collector:4318',
    'OpenTelemetry collector that receives traces over OTLP/HTTP; operations.md tells which other OTEL_ variables work.',
  ),
  NODE_ENV: setting(
    text,
    'development',
    'production',
    'production turns introspection, explorers, suggestions and the CORS origins of Apollo Sandbox off, unless they are set.',
  ),
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof settings;
