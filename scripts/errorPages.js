// docs/errors/<CODE>.md, the pages that `extensions.docUrl` links, and docs/errors.md, the list of them. Codes and whether
// a request may be repeated come from the gateway's own list, the faults behind a code from the table that
// test/upstream/faultTable.test.ts tries; what to do about it is written here.

const log = '[log](../log.md)';
const alert = (name) => `[${name}](../alerts.md#${name.toLowerCase()})`;
const atField = '294, with the data of the other fields';
const traceFault = `Look up the \`requestId\` in the ${log} for the cause; each episode of failures is logged once when it begins and once when it ends. The alert is ${alert('AvailabilityAtRisk')}, whose section leads to the others.`;

/** What each code means, with which HTTP status it comes, and what each side does. `brief` is the caller's part in the list. */
const prose = {
  GRAPHQL_PARSE_FAILED: {
    means: 'The document has a syntax error.',
    status: '400',
    brief: 'correct the document',
    caller: '`locations` gives the line and column of the syntax error.',
    operator: `Nothing. To find out which program sends the document, see the field \`client\` in the ${log}.`,
  },
  GRAPHQL_VALIDATION_FAILED: {
    means: 'The document is correct GraphQL, but does not fit the schema or exceeds a limit.',
    status: '422',
    brief: 'correct the document',
    caller:
      'The messages name up to five mistakes, or the limit. With introspection off they say only that the document does not fit the schema. After an update of the gateway, generate your documents again from its schema.',
    operator: `The limits are \`MAX_DEPTH\`, \`MAX_ALIASES\`, \`MAX_TOKENS\`, \`MAX_DIRECTIVES\`, \`MAX_ROOT_FIELDS\` and \`MAX_MUTATION_FIELDS\`. With introspection off, callers are not told what does not fit: the ${log} has it as \`cause\`.`,
  },
  BAD_USER_INPUT: {
    means: 'An argument, a variable or the HTTP request itself is malformed or exceeds a limit.',
    status: `422; ${atField}, when only the argument of one field is wrong; 400, 405, 406, 413 or 415 when the HTTP request itself is wrong`,
    brief: 'correct the input',
    caller:
      'When single values are wrong, `violations` lists up to 20 of them, each with its path and what was expected.',
    operator:
      'Nothing, unless the message names a setting, such as `MAX_BODY_BYTES`, `MAX_ANSWER_BYTES` or `TRUSTED_DOCUMENTS_FILE`, that is too strict for a legitimate client.',
  },
  UNAUTHENTICATED: {
    means: 'The access token is missing, malformed or expired, or its issuer or audience is not accepted.',
    status: '401; a WebSocket is closed with the code 4401 or 4403; an event stream ends with this error',
    brief: 'sign in again',
    caller: 'Get a new access token and send the request again. The message says what is wrong with the present one.',
    operator: `When many callers get it, compare \`AUTH_ISSUER\` and \`AUTH_AUDIENCE\` with their tokens ([what each provider writes](../identity-providers.md)), and see ${alert('KeySetOld')}. The reason is in the audit lines \`token-refused\` of the ${log}.`,
  },
  FORBIDDEN: {
    means:
      'The access token is valid, but it lacks a scope, or the caller may not see this taxpayer. Also for fields that only a router may ask for, and for an origin or a client certificate that is not accepted.',
    status: `${atField}; 403 for a stream from an origin that is not in \`CORS_ORIGINS\`, for a callback subscription that is not allowed, and for a client without an accepted certificate`,
    brief: 'ask for the scope or the taxpayer',
    caller:
      'The message names the missing scope, if that is the reason. Signing in again helps only if the new token has more rights.',
    operator: `The identity provider grants scopes and taxpayers; \`AUTH_SCOPES_CLAIM\`, \`AUTH_SCOPES_MAP\` and \`AUTH_TAXPAYERS_CLAIM\` say in which claims [of a token](../identity-providers.md) to find them. The reason is in the audit lines \`access-denied\` of the ${log}.`,
  },
  NOT_FOUND: {
    means: 'The service knows no taxpayer or job with this id.',
    status: atField,
    brief: 'check the id',
    caller: 'This answer is cached: a taxpayer created just now may stay unknown to the gateway for 30 seconds.',
    operator: `Nothing for a few. A large number comes from a caller who guesses ids: the field \`caller\` in the ${log} is the hash of that caller.`,
  },
  IDEMPOTENCY_CONFLICT: {
    means: 'The same caller used this `idempotencyKey` within the last 24 hours with another input.',
    status: atField,
    brief: 'use a new key for another input',
    caller: 'To get the link created before, send the first input again with this key.',
    operator: 'Nothing.',
  },
  OUTCOME_UNKNOWN: {
    means: 'The request was sent to the service, but no usable answer came back: the link may have been created.',
    status: atField,
    brief: 'the link may exist: look before you create another',
    caller:
      'With the same `idempotencyKey` you get this error for 24 hours, and no second link is created. To create another link nevertheless, use a new key.',
    operator: traceFault,
  },
  TOKEN_BUDGET_EXHAUSTED: {
    means:
      'The token budget, which limits calls to the token endpoint per clock hour, is used up, for the whole fleet or for this caller.',
    status: atField,
    brief: 'wait `retryAfterSeconds`',
    caller:
      'Cached records are still shown, with `stale: true`. To save calls, pass `maxAgeSeconds` only where you need it.',
    operator: `See the alerts ${alert('TokenBudgetLow')} and ${alert('TokenBudgetExhausted')}. \`TOKEN_BUDGET_PER_HOUR\` limits the fleet, \`TOKEN_BUDGET_CALLER_SHARE\` one caller.`,
  },
  UPSTREAM_RATE_LIMITED: {
    means:
      'The service rate limits the gateway (429). The whole fleet pauses its calls for as long as the service asked.',
    status: atField,
    brief: 'wait `retryAfterSeconds`',
    caller: 'A retry before then gets the same error, without a call to the service.',
    operator: `See the alert ${alert('ServiceRateLimits')}.`,
  },
  TAXPAYER_NOT_AUTHORIZED: {
    means: "The service refuses this taxpayer's access token, even a new one, or refuses access to this taxpayer.",
    status: atField,
    brief: 'send the taxpayer a link to authorize access',
    caller:
      'Create the link with `createClientLink`. After the taxpayer has signed, the gateway may take up to a minute to try a new access token.',
    operator: 'Nothing for one taxpayer. If it concerns all taxpayers, ask the operators of the service.',
  },
  UPSTREAM_CREDENTIALS_REJECTED: {
    means: "The service refuses the gateway's own client id and secret. The caller did nothing wrong.",
    status: atField,
    brief: 'tell the operators',
    caller: 'Quote the `requestId`.',
    operator: `Check \`UPSTREAM_CLIENT_ID\` and \`UPSTREAM_CLIENT_SECRET\`; see the alert ${alert('CredentialsRefused')}.`,
  },
  UPSTREAM_REJECTED: {
    means: 'The service refuses this request with a 4xx status: the request itself is the reason.',
    status: atField,
    brief: 'check what you sent',
    caller: 'The gateway cannot say which part the service refuses: compare your input with one that was accepted.',
    operator: `The \`cause\` in the ${log} is the HTTP status of the service.`,
  },
  UPSTREAM_TIMEOUT: {
    means: 'The service did not answer in time.',
    status: atField,
    brief: 'try again after `retryAfterSeconds`',
    caller: 'You can safely retry a query; retry a mutation only if it has an `idempotencyKey`.',
    operator: `${traceFault} \`UPSTREAM_TIMEOUT_MS\` limits one try of a call, \`UPSTREAM_DEADLINE_MS\` all tries together.`,
  },
  UPSTREAM_UNAVAILABLE: {
    means: 'The service cannot be reached or fails, or its circuit breaker is open because it kept failing.',
    status: atField,
    brief: 'try again after `retryAfterSeconds`',
    caller:
      'Nothing was created. `createClientLink` with an `idempotencyKey` gets this error also while the shared store of the fleet does not answer.',
    operator: `${traceFault} See also ${alert('BreakerOpen')} and ${alert('StoreDown')}.`,
  },
  UPSTREAM_INVALID_RESPONSE: {
    means: 'The answer of the service breaks its contract, for example by a missing field.',
    status: atField,
    brief: 'tell the operators',
    caller: 'Quote the `requestId`.',
    operator: `Tell the operators of the service. The ${log} says which field of the answer is wrong and what was expected, never its value.`,
  },
  AUTH_UNAVAILABLE: {
    means:
      'The gateway has no usable keys of the identity provider, so it cannot verify access tokens; or the decision point does not say whether the caller may see a taxpayer.',
    status: `503; ${atField}`,
    brief: 'try again after `retryAfterSeconds`',
    caller: 'Do not sign in again: the access token may be valid.',
    operator: `Check that this machine can reach the key set of the identity provider and the [decision point](../decision-point.md). The ${log} has the cause in the lines \`a key set cannot be read\` and \`the decision point cannot decide\`.`,
  },
  RATE_LIMITED: {
    means: 'This caller has reached a rate limit or another limit per caller. The message names it.',
    status: `429; ${atField}, when the limit is on subscriptions, waiting queries, calls to the service or decisions at once`,
    brief: 'wait `retryAfterSeconds`; at a limit on open streams, close one first',
    caller:
      'Other callers are not affected. For the limit per minute, the response header `RateLimit` says how much is left.',
    operator: `The runbook shows how to find out [why a caller got a 429](../runbook.md#why-did-this-caller-get-a-429). The limits are \`RATE_LIMIT_PER_MINUTE\`, \`MAX_CONNECTIONS\`, \`MAX_SUBSCRIPTIONS\` and one caller's share of memory and work.`,
  },
  SHUTTING_DOWN: {
    means: 'This process is shutting down and accepts no new streams.',
    status: '503',
    brief: 'try again after `retryAfterSeconds`',
    caller: 'Connect again: another process will answer. The typed client reconnects by itself.',
    operator: 'Nothing during a roll-out. Otherwise find out what sends SIGTERM to the process.',
  },
  INTERNAL_SERVER_ERROR: {
    means: 'A bug in the gateway.',
    status: `${atField}; 500 where nothing was executed`,
    brief: 'tell the operators',
    caller: 'Quote the `requestId`.',
    operator: `Look up the \`requestId\` in the ${log}, at level error, and report the bug. See the alert ${alert('Bugs')}.`,
  },
};

/** Paths, from the repository's root, and texts. Throws when a code has no prose here, or prose no code. */
export function errorPages(errorCodes, faults, command) {
  const codes = Object.keys(errorCodes);
  const unlike = [...codes, ...Object.keys(prose)].filter((code) => !(code in prose) || !(code in errorCodes));
  if (unlike.length > 0)
    throw new Error(`scripts/errorPages.js must have exactly the codes of the gateway: see ${unlike}`);
  const origin = `<!-- Printed from scripts/errorPages.js by \`${command}\`. Change it there. -->`;
  const pages = codes.map((code) => [
    `docs/errors/${code}.md`,
    page(code, errorCodes[code], causesOf(code, faults), origin),
  ]);
  return [['docs/errors.md', list(codes, errorCodes, origin)], ...pages];
}

function page(code, { retryable }, causes, origin) {
  const { means, status, brief, caller, operator } = prose[code];
  const again = retryable ? 'yes, after `retryAfterSeconds`' : 'no';
  return `${origin}

# ${code}

${means}

| Can the same request succeed later? | HTTP status |
| --- | --- |
| ${again} | ${status} |

**Callers:** ${brief[0].toUpperCase()}${brief.slice(1)}. ${caller}

**Operators:** ${operator}
${causes.length === 0 ? '' : `\nCallers also get this code when [the service](../faults.md)\n\n${causes.join('\n')}\n`}
[All codes](../errors.md); [HTTP statuses](../graphql-over-http.md) for clients that accept only \`application/json\`.
`;
}

/** One line for each kind of fault that ends in this code, with the operations that it ends so. */
function causesOf(code, { operations, classes }) {
  return classes.flatMap(({ title, expect }) => {
    const names = Object.keys(operations).filter(
      (name) => (expect[name] ?? expect[operations[name].like])?.code === code,
    );
    return names.length === 0 ? [] : [`- ${title}: ${names.map((name) => `\`${name}\``).join(', ')}`];
  });
}

function list(codes, errorCodes, origin) {
  const rows = codes.map(
    (code) => `| [${code}](errors/${code}.md) | ${errorCodes[code].retryable ? 'yes' : 'no'} | ${prose[code].brief} |`,
  );
  return `${origin}

# Errors

Every value of \`extensions.code\`. \`extensions.retryable\` says whether the same request can succeed later, and
\`extensions.retryAfterSeconds\` after how many seconds. If \`DOCS_URL\` is set, \`extensions.docUrl\` links the page of the code.

| Code | Retry | What callers do |
| --- | --- | --- |
${rows.join('\n')}
`;
}
