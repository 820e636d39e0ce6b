import type { SettingName } from './settings.js';

/** What each setting means, for the documentation; the gateway itself does not load it. */
export const settingMeanings: Readonly<Record<SettingName, string>> = {
  PORT: 'Port to listen on; 0 picks a free one. Serves every path, except /metrics when METRICS_PORT is set.',
  HOST: 'Address to listen on; :: for all of IPv6 and IPv4, 0.0.0.0 for IPv4 alone. With AUTH_MODE=developer it must be a loopback address.',
  DRAIN_TIMEOUT_MS: 'How long requests in flight may take to finish after SIGTERM, in milliseconds.',
  TLS_CERT_FILE:
    'PEM certificate chain to serve HTTPS with, the own certificate first; needs TLS_KEY_FILE. Reloaded when the file changes.',
  TLS_KEY_FILE: 'PEM private key of TLS_CERT_FILE, without a passphrase. Reloaded when the file changes.',
  TLS_CLIENT_CA_FILE:
    'Turns on mutual TLS: clients must present a certificate issued by an authority in this PEM file, or their handshake is refused. Needs METRICS_PORT, for probes. Reloaded when the file changes.',
  TRUSTED_PROXIES:
    "Addresses and ranges of the proxies in front of the gateway, separated by commas. Their X-Forwarded-For header then gives the caller's address for rate limits and audit lines. A proxy that sets only Forwarded (RFC 7239) must not be listed.",
  HTTPS_PROXY:
    'Proxy for calls to https: URLs of the service, the identity provider, the decision point and the trace collector. https_proxy works too, and comes first.',
  HTTP_PROXY:
    'Proxy for calls to http: URLs of the service, the identity provider, the decision point and the trace collector. http_proxy works too, and comes first.',
  NO_PROXY:
    'Host names (each with its subdomains) and addresses to call without a proxy, separated by commas; * means all. Loopback addresses are never called through a proxy. no_proxy works too, and comes first.',
  LOG_LEVEL: 'Least severe level to log. Operation lines are info; audit lines are logged at all levels but silent.',
  LOG_OPERATIONS:
    'Which operations get a log line when they end: notable means those that are refused, fail, are slow (LOG_SLOW_MS), are mutations or called the token endpoint; all; or none.',
  LOG_SLOW_MS: 'With LOG_OPERATIONS=notable, an operation that takes this many milliseconds is logged as slow.',
  AUDIT:
    'Which events get an audit line. decisions: refused callers, access tokens shown, links created and taxpayers erased. all: also every token record and job status shown.',

  UPSTREAM_BASE_URL: 'Base URL of the taxpayer-authorization service, with or without a slash at the end.',
  UPSTREAM_CLIENT_ID: 'Client id issued by the service.',
  UPSTREAM_CLIENT_SECRET: 'Client secret issued by the service. From a file, it is reloaded when the file changes.',
  UPSTREAM_CA_FILE:
    "PEM file of the certificate authorities trusted for the service, instead of the public ones. Set it when a private authority issued the service's certificate. Reloaded when the file changes.",
  UPSTREAM_CERT_FILE:
    'PEM certificate chain to present to the service (mutual TLS), the own certificate first. Reloaded when the file changes.',
  UPSTREAM_KEY_FILE: 'PEM private key of UPSTREAM_CERT_FILE, without a passphrase. Reloaded when the file changes.',
  UPSTREAM_API_VERSION: 'Service-API-Version header to send on reads of token records and job statuses.',
  UPSTREAM_TIMEOUT_MS: 'Time limit for one try of a call to the service, in milliseconds.',
  UPSTREAM_DEADLINE_MS:
    'Time limit for a call to the service with all its retries and the pauses between them, in milliseconds. The default rises to UPSTREAM_TIMEOUT_MS if that is longer.',
  BREAKER_RESET_MS:
    'How long the circuit breaker of a failing endpoint stays open before one call tries the endpoint again, in milliseconds. Also the longest pause before a token record that could not be read is read again.',
  PROVIDERS_FILE:
    'JSON list of { name, value, description } that replaces the values of the enum Provider: name in the schema, value at the service. Set it to name tax-preparation products, for which the built-in values are placeholders.',

  CACHE_URL:
    'Store of token records, job statuses, leases and counters. file:<directory> (relative to the working directory, or absolute as in file:/var/lib/gateway) is for one process, and survives its restarts; redis://user:password@host:6379/0, redis+sentinel://host:26379,host:26379/group and redis+cluster://host:6379,host:6379 are shared by a fleet (with rediss in place of redis: over TLS); memory: ends with its process.',
  CACHE_ENCRYPTION_KEY:
    'Key that encrypts stored entries: 32 bytes in base64, the same in the whole fleet. Set it in production, so that the cache survives a change of the client secret. Several are separated by commas, or by lines in a file: the first encrypts, each decrypts, and the names of entries are derived from the last. To rotate, put the new key in front; dropping the last key costs one token call per taxpayer.',
  CACHE_MAX_ENTRIES:
    'Most token records, and separately most job statuses, that one process keeps in memory. The least recently used are evicted, also when either kind takes a quarter of the heap.',
  TOKEN_FRESH_SHARE:
    'How long a cached token record is fresh, as a share of the time it had been unchanged when it was read: with 0.1, a record unchanged for 10 hours is shown for 1 hour without a call to the service.',
  TOKEN_FRESH_MIN_SECONDS: 'Shortest time for which a cached token record is fresh, in seconds.',
  TOKEN_FRESH_MAX_SECONDS:
    'Longest time for which a cached token record is fresh, in seconds. Records in the final statuses REJECTED and COMPLETED are always fresh for this long.',
  TOKEN_FRESH_SECONDS:
    'Fixed time for which a cached token record is fresh, in seconds; in the final statuses REJECTED and COMPLETED, at least a day. Cannot be combined with TOKEN_FRESH_SHARE, TOKEN_FRESH_MIN_SECONDS or TOKEN_FRESH_MAX_SECONDS.',
  STORE_TTL_DAYS: 'How long data about a taxpayer is kept, in store and memory, after it was read, in days.',
  TOKEN_BUDGET_PER_HOUR:
    'Token budget: the calls that the whole fleet may make to the token endpoint in each clock hour. 0 means no limit.',
  TOKEN_BUDGET_CALLER_SHARE:
    'Share of the token budget that one caller may use, at least one call. 1 lets one caller use all of it.',
  TOKEN_BUDGET_WATCH_SHARE:
    'Share of the token budget that all subscriptions to token records together may use, at least one call. Once it is used up, they wait for the next clock hour.',
  JOB_POLL_MIN_MS: 'First interval between two polls of a watched refresh job, in milliseconds, with 10 % jitter.',
  JOB_POLL_MAX_MS: 'Longest interval between two polls of a watched refresh job, in milliseconds, with 10 % jitter.',
  JOB_WATCH_MAX_SECONDS: 'Longest time for a subscription, in seconds; it then completes without an error.',

  AUTH_MODE:
    'How callers are authenticated. jwt: by an access token. developer: a caller without a token is the local developer, with every scope (embedded sandbox only). disabled: not at all; anybody may read and create everything.',
  AUTH_ISSUER:
    'Accepted iss claims of access tokens, separated by commas. Compared exactly: a slash at the end counts. Without AUTH_JWKS_URL, the key set of each issuer is found by OpenID Connect discovery or RFC 8414.',
  AUTH_JWKS_URL:
    'URLs of the key sets (JWKS) of the issuers in AUTH_ISSUER, one for each in the same order, separated by commas. Set it when an issuer publishes no metadata.',
  AUTH_AUDIENCE:
    'Accepted aud claims of access tokens, separated by commas. To accept an audience from one issuer only, write the issuer, a space and the audience.',
  AUTH_TOKEN_TYPES:
    'Accepted typ headers of access tokens, separated by commas; a token without one counts as JWT. Set at+jwt alone to refuse every token that does not say it is an access token (RFC 9068).',
  AUTH_KEYS_MAX_AGE_SECONDS:
    'How long the last key set is used while the identity provider cannot be reached, in seconds. After that no token is accepted until it can be read again.',
  AUTH_SCOPES_CLAIM:
    "Claims that may hold the caller's scopes, separated by commas; the first that a token has is used. A nested claim is named by its path, such as realm_access.roles.",
  AUTH_SCOPES_MAP:
    "JSON object that maps values of the scopes claim (AUTH_SCOPES_CLAIM) to the gateway's scopes, each to one or to a list. A value that is not in it counts as a scope itself.",
  AUTH_TAXPAYERS_CLAIM: 'Claim with the ids of the taxpayers a caller may see. A nested claim is named by its path.',
  AUTH_DECISION_URL:
    'Base URL of an OpenID AuthZEN decision point. It is asked, under /access/v1, whether a caller may see a taxpayer that the token does not list.',
  AUTH_DECISION_TOKEN:
    'Credential for the decision point: a bearer token, or a scheme and a token. From a file, it is reloaded when the file changes.',
  AUTH_DECISION_CLAIMS:
    "Claims of the caller's token that are sent to the decision point, separated by commas. A nested claim is named by its path, such as realm_access.roles.",
  AUTH_DECISION_TTL_SECONDS:
    'How long a decision of the decision point is cached, in seconds; a refusal for at most 5. A withdrawn right ends within this time.',
  FEDERATION_SHARED_SECRET:
    'Secret that a router sends in the header x-gateway-router-secret. When set, _service and _entities answer only the router. From a file, it is reloaded when the file changes.',
  FEDERATION_SHARED_SECRET_PREVIOUS:
    'The FEDERATION_SHARED_SECRET used before a rotation, which is still accepted. From a file, it is reloaded when the file changes; an empty file withdraws it.',
  CORS_ORIGINS:
    'Origins of web pages that may call the gateway and open streams (CORS), separated by commas, and exactly as browsers send them: of apps and browser extensions with their own scheme, such as capacitor://localhost. There are no wildcards.',
  INTROSPECTION:
    'true allows introspection and serves the explorers at / and /graphiql. With false, error messages do not reveal the schema either.',
  TRUSTED_DOCUMENTS_FILE:
    'Files, or folders of .json files, separated by commas, that list the only documents that may run, sent by id or as text. Each is a persisted-query manifest of Apollo or { hash: text } as GraphQL Code Generator and Relay write it. Reloaded when they change; the lists in use stay while the new ones are unusable. A router that presents the shared secret may send any document.',
  TRUSTED_DOCUMENTS_MODE:
    'enforce refuses documents that TRUSTED_DOCUMENTS_FILE does not list; report lets them run, counts them, and logs each by hash, client and operation.',
  RATE_LIMIT_PER_MINUTE:
    'Rate limit: the root fields that one caller may request per clock minute from the whole fleet. 0 means no limit. Callers without a token are told apart by their address.',
  MAX_BODY_BYTES: 'Largest request body, in bytes.',
  MAX_ANSWER_BYTES: 'Largest answer to one operation, in bytes; a larger one is replaced by an error.',
  MAX_DEPTH: 'Deepest nesting of fields in a document, in levels.',
  MAX_ALIASES: 'Most aliases in a document.',
  MAX_TOKENS: 'Most lexical tokens in a document.',
  MAX_DIRECTIVES: 'Most directives in a document.',
  MAX_ROOT_FIELDS: 'Most root fields in one operation, including those in fragments.',
  MAX_MUTATION_FIELDS: 'Most root fields in one mutation, including those in fragments; each creates something.',
  MAX_REPRESENTATIONS: 'Most entities that a router may ask for in all _entities fields of one document together.',
  MAX_METADATA_DEPTH: 'Deepest nesting of metadata, sent or received, in levels; variables may have ten levels more.',
  MAX_ID_LENGTH: 'Longest taxpayer id, job id or idempotency key, in characters.',
  MAX_RESPONSE_BYTES: 'Largest response accepted from the service, in bytes after decompression.',
  MAX_CONNECTIONS:
    'Most WebSockets and event streams that one process keeps open, and, counted separately, most subscriptions and queries that wait (waitSeconds). One caller may hold a quarter of each.',
  MAX_SUBSCRIPTIONS: 'Most operations running at once on one WebSocket.',

  METRICS_PORT:
    'Separate port, without TLS, for /metrics, which is then not served on PORT, and for /health/live and /health/ready.',
  OTEL_EXPORTER_OTLP_ENDPOINT:
    'Base URL of the OpenTelemetry collector. Traces are sent over OTLP/HTTP to /v1/traces under it; see Traces in docs/configuration.md.',
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'Full URL to send traces to; replaces OTEL_EXPORTER_OTLP_ENDPOINT.',
  OTEL_EXPORTER_OTLP_PROTOCOL: 'Encoding of the traces sent: http/json or http/protobuf. gRPC is not supported.',
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL:
    'Encoding of the traces sent, http/json or http/protobuf, in place of OTEL_EXPORTER_OTLP_PROTOCOL.',
  OTEL_SDK_DISABLED: 'true turns tracing off, even when an endpoint is set.',
  NODE_ENV:
    'production turns off introspection, the explorers and CORS for Apollo Sandbox, unless INTROSPECTION or CORS_ORIGINS is set.',
};
