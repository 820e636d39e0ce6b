import type { SettingName } from './settings.js';

/** What each setting means, for the documentation; the gateway itself does not load it. */
export const settingMeanings: Readonly<Record<SettingName, string>> = {
  PORT: 'Port of every path; 0 picks a free one.',
  HOST: 'Address to listen on. The developer mode of the sandbox accepts loopback addresses only.',
  WORKERS: 'Processes that share the port. A dead one is replaced.',
  DRAIN_TIMEOUT_MS: 'How long requests in flight may take to end after SIGTERM, in milliseconds.',
  TLS_CERT_FILE: 'PEM certificate chain; read again when it changes.',
  TLS_KEY_FILE: 'PEM private key; read again when it changes.',
  TLS_CLIENT_CA_FILE:
    'PEM authorities whose certificates clients must present, on every path but /health/; read again when it changes.',
  TRUSTED_PROXIES:
    "Proxies in front of the gateway, whose Forwarded or X-Forwarded-For tells the caller's address for limits and audit lines.",
  HTTPS_PROXY:
    'Proxy for calls to https: addresses of the service, key sets, the decision point and the trace collector. In lower case as well.',
  HTTP_PROXY: 'The same for http: addresses.',
  NO_PROXY:
    'Hosts with all below them, addresses and ranges that are called directly, or *. Loopback addresses always are.',
  LOG_LEVEL:
    'Least severe level that is logged. Operation lines have info; audit lines have a level of their own and are only left out by silent.',
  LOG_OPERATIONS:
    'Operations that get a log line at their end: those refused, failed, slow, and mutations; all; or none.',
  LOG_SLOW_MS: 'From how many milliseconds on an operation is slow, for LOG_OPERATIONS.',
  AUDIT:
    'What gets an audit line: refused callers, tokens shown, links and erasures; or all records and job statuses shown as well.',

  UPSTREAM_BASE_URL: 'Base address of the taxpayer-authorization service.',
  UPSTREAM_CLIENT_ID: 'Client id issued by the service.',
  UPSTREAM_CLIENT_SECRET: 'Client secret issued by the service. From a file it is read again when the file changes.',
  UPSTREAM_CA_FILE:
    "PEM authorities, the only ones that the service's certificate may come from; read again when it changes.",
  UPSTREAM_CERT_FILE: 'PEM certificate chain to present to the service; read again when it changes.',
  UPSTREAM_KEY_FILE: 'Its PEM private key; read again when it changes.',
  UPSTREAM_API_VERSION: 'Sent as Service-API-Version on the two reading endpoints.',
  UPSTREAM_TIMEOUT_MS: 'Time for one try of a call, in milliseconds.',
  UPSTREAM_DEADLINE_MS: 'Time for a call with all its tries and waits, in milliseconds.',
  BREAKER_RESET_MS:
    'How long an endpoint that kept failing is left alone before one call tries it again, and a record that could not be read at most, in milliseconds.',
  PROVIDERS_FILE: 'JSON list of { name, value, description } that replaces the provider catalogue.',

  CACHE_URL:
    'Where tokens, job statuses and leases are shared: lmdb:directory on one machine; redis://user:password@host:6379/0, redis+sentinel://host:26379,host:26379/group or redis+cluster://host:6379,host:6379, each also as rediss for TLS; memory: in one process.',
  CACHE_CA_FILE: "The same as UPSTREAM_CA_FILE, for Redis's certificate.",
  CACHE_CERT_FILE: 'PEM certificate chain to present to Redis; read again when it changes.',
  CACHE_KEY_FILE: 'Its PEM private key; read again when it changes.',
  AUTH_CA_FILE: 'The same as UPSTREAM_CA_FILE, for key sets and the decision point.',
  AUTH_CERT_FILE: 'PEM certificate chain to present to them; read again when it changes.',
  AUTH_KEY_FILE: 'Its PEM private key; read again when it changes.',
  CACHE_ENCRYPTION_KEY: 'Key of stored entries: 32 bytes in base64.',
  CACHE_ENCRYPTION_KEY_PREVIOUS:
    'The key before a rotation: entries it sealed can still be read. Keep it for a day after the last process has the new one.',
  CACHE_MAX_ENTRIES:
    'Token records, and as many job statuses, held in the memory of one process; the least recently used go first, also when either takes a quarter of the heap.',
  TOKEN_FRESH_SHARE:
    'A token record is shown without asking the service again for this share of the time it had been unchanged when it was read.',
  TOKEN_FRESH_MIN_SECONDS: 'Shortest such time, in seconds.',
  TOKEN_FRESH_MAX_SECONDS: 'Longest such time, in seconds; it holds for the final statuses REJECTED and COMPLETED.',
  TOKEN_FRESH_SECONDS:
    'A fixed time in place of the learned one, in seconds, and at least a day for final statuses. Not beside the three above.',
  STORE_TTL_DAYS:
    'How long anything about a taxpayer is kept after it was read from the service, in the store and in memory, in days.',
  TOKEN_BUDGET_PER_HOUR: 'Calls to the token endpoint per hour for the whole fleet; 0 means no limit.',
  TOKEN_BUDGET_CALLER_SHARE:
    'What one caller may take of the token budget that the others have left; 1 lets one caller take all of it.',
  TOKEN_BUDGET_WATCH_SHARE:
    'What the watchers of token records may take, all together, of the token budget that queries have left. When it is spent they wait for the next hour.',
  JOB_POLL_MIN_MS: 'First interval between polls of a watched job, in milliseconds, give or take a tenth.',
  JOB_POLL_MAX_MS: 'Longest interval between polls of a watched job, in milliseconds, give or take a tenth.',
  JOB_WATCH_MAX_SECONDS: 'How long one subscription may last before it ends cleanly, in seconds.',

  AUTH_MODE: 'Who may call: bearers of a valid token; a local developer with every scope (sandbox only); anybody.',
  AUTH_ISSUER:
    'The iss claim a token must carry, exactly. Several are separated by commas. Its key set is found by OpenID discovery or RFC 8414.',
  AUTH_JWKS_URL: 'Key sets, instead of finding them: one for each of AUTH_ISSUER, in that order, separated by commas.',
  AUTH_AUDIENCE:
    'The aud claim a token must carry; one of several, separated by commas. One that counts for a single issuer stands after it and a space.',
  AUTH_TOKEN_TYPES:
    'Values of the typ header that a token may have; one without counts as JWT. at+jwt alone refuses whatever does not say that it is an access token (RFC 9068).',
  AUTH_KEYS_MAX_AGE_SECONDS: 'How long known keys are used while the identity provider cannot be reached, in seconds.',
  AUTH_SCOPES_CLAIM:
    'Claims that may list the scopes; the first that a token has counts. A nested claim is named by its path.',
  AUTH_SCOPES_MAP:
    'The scopes that a value of that claim stands for, as JSON: one of ours, or a list. Values that are not named stand for themselves.',
  AUTH_TAXPAYERS_CLAIM: 'Claim that lists the taxpayers a caller may see. A nested claim is named by its path.',
  AUTH_DECISION_URL:
    'Base address of a decision point that speaks OpenID AuthZEN: asked, under /access/v1, about taxpayers that a token does not list.',
  AUTH_DECISION_TOKEN:
    'What the gateway presents to the decision point: a bearer token, or a scheme and a token. From a file it is read again when the file changes.',
  AUTH_DECISION_CLAIMS:
    'Claims of the caller that the decision point is told, separated by commas. A nested claim is named by its path.',
  AUTH_DECISION_TTL_SECONDS:
    'How long a decision holds before it is asked for again, in seconds; a refusal for 5 at most. A withdrawn right ends within this time.',
  FEDERATION_SHARED_SECRET:
    'When set, _service, _entities and callback subscriptions answer only to a router that presents it in x-gateway-router-secret. From a file it is read again when the file changes.',
  FEDERATION_SHARED_SECRET_PREVIOUS:
    'The shared secret before a rotation, still accepted. From a file it is read again when the file changes; an empty file withdraws it.',
  FEDERATION_CERTIFICATE_NAMES:
    "DNS names and SPIFFE ids of the router's client certificate, which then stands for the shared secret.",
  CALLBACK_ORIGINS: 'Origins that callback subscriptions may post to.',
  CORS_ORIGINS: 'Browser origins that may call, separated by commas.',
  INTROSPECTION:
    'Whether the schema may be introspected; with it come the explorers at / and /graphiql. Without it no error tells what the schema holds.',
  DOCS_URL:
    'Where the folder docs/ is published: each error then links the page of its code, in extensions.docUrl. Requests are not sent there.',
  TRUSTED_DOCUMENTS_FILE:
    'Files, or folders of .json files, separated by commas, each a persisted-query manifest of Apollo or { hash: text } as GraphQL Code Generator and Relay write it: only these documents may run, named by id or sent whole, and one with a clientName for that client only. Read again when they change; while they cannot be used, those in use stay. A router that presents the shared secret is exempt.',
  TRUSTED_DOCUMENTS_MODE:
    'enforce refuses other documents; report lets them run, counts them, and logs each by hash, client and operation.',
  RATE_LIMIT_PER_MINUTE:
    'Root fields of operations per caller and minute over the whole fleet; 0 means no limit. Without authentication callers are told apart by their address.',
  MAX_BODY_BYTES: 'Largest request body, in bytes.',
  MAX_ANSWER_BYTES: 'Largest answer to one operation, in bytes; what would be larger is an error.',
  MAX_DEPTH: 'Deepest selection of a document.',
  MAX_ALIASES: 'Most aliases in a document.',
  MAX_TOKENS: 'Most lexical tokens in a document.',
  MAX_DIRECTIVES: 'Most directives in a document.',
  MAX_ROOT_FIELDS: 'Most root fields an operation may select, fragments included.',
  MAX_MUTATION_FIELDS: 'The same for a mutation: each field creates something.',
  MAX_REPRESENTATIONS: 'Most representations in all _entities of one document.',
  MAX_METADATA_DEPTH: 'Deepest nesting of metadata, sent or received; variables as a whole may have ten levels more.',
  MAX_ID_LENGTH: 'Longest taxpayer id, job id or idempotency key, in characters.',
  MAX_RESPONSE_BYTES: 'Largest answer of the service, in bytes after decompression.',
  MAX_CONNECTIONS:
    'Most sockets and event streams of one process that are open at once, and most subscriptions and waiting queries; one caller may have a quarter of either.',
  MAX_SUBSCRIPTIONS: 'Most operations running at once on one WebSocket.',

  METRICS_PORT: 'Serve /metrics on this port alone.',
  OTEL_EXPORTER_OTLP_ENDPOINT:
    'OpenTelemetry collector that receives traces over OTLP/HTTP; see Traces in docs/configuration.md.',
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'Address that traces are posted to as it is, in place of the one above.',
  OTEL_EXPORTER_OTLP_PROTOCOL: 'How traces are written: http/json or http/protobuf.',
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'The same, in place of the one above.',
  OTEL_SDK_DISABLED: 'Turns tracing off, whatever the other variables say.',
  NODE_ENV:
    'production turns introspection, explorers and the CORS origins of Apollo Sandbox off, unless they are set.',
};
