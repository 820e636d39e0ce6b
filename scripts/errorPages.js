// docs/errors/<CODE>.md, the pages that `extensions.docUrl` links, and docs/errors.md, the list of them. Codes and whether
// a request may be repeated come from the gateway's own list, the faults behind a code from the table that
// test/upstream/faultTable.test.ts tries; what to do about it is written here.

const log = '[log](../log.md)';
const alert = (name) => `[${name}](../alerts.md#${name.toLowerCase()})`;
const atField = '294, beside the data of the other fields';
const traceFault = `The cause is in the ${log}, by \`requestId\` and once per episode; the alerts are ${alert('AvailabilityAtRisk')} and those it leads to.`;

/** What each code means, with which HTTP status it comes, and what each side does. `brief` is the caller's part in the list. */
const prose = {
  GRAPHQL_PARSE_FAILED: {
    means: 'The document is not GraphQL.',
    status: '400',
    brief: 'correct the document',
    caller: '`locations` says where it cannot be read.',
    operator: `Nothing. The field \`client\` in the ${log} names the program that sends it.`,
  },
  GRAPHQL_VALIDATION_FAILED: {
    means: 'The document is GraphQL, but does not fit the schema or is larger than a limit allows.',
    status: '422',
    brief: 'correct the document',
    caller:
      'The messages name what does not fit, five at most, or the limit; with introspection off they do not tell what the schema holds. After an update of the gateway, generate the documents again from its schema.',
    operator: `The limits are \`MAX_DEPTH\`, \`MAX_ALIASES\`, \`MAX_TOKENS\`, \`MAX_DIRECTIVES\`, \`MAX_ROOT_FIELDS\` and \`MAX_MUTATION_FIELDS\`. With introspection off, the ${log} has the cause that callers are not told.`,
  },
  BAD_USER_INPUT: {
    means: 'An argument, a variable or the request itself is not as it must be.',
    status: `422; ${atField}, for an argument found wrong at its field; 400, 405, 406, 413 or 415 for a request that is malformed as HTTP`,
    brief: 'correct the input',
    caller:
      'Where single values are wrong, `violations` names each by its path, 20 at most, and what was expected there.',
    operator:
      'Nothing, unless the message names a setting (`MAX_BODY_BYTES`, `MAX_ANSWER_BYTES`, `TRUSTED_DOCUMENTS_FILE` and the like) that is too narrow for an honest client.',
  },
  UNAUTHENTICATED: {
    means:
      'The access token is missing, malformed, expired, or not from an issuer and for an audience that are accepted.',
    status: '401; a WebSocket is closed with 4401 or 4403, an event stream ends with this error',
    brief: 'sign in again',
    caller: 'Get a new token and send the request again. The message says what is wrong with this one.',
    operator: `For many callers at once compare \`AUTH_ISSUER\` and \`AUTH_AUDIENCE\` with the tokens ([what each provider writes](../identity-providers.md)), and see ${alert('KeySetOld')}. Audit lines of the ${log} with \`token-refused\` have the reason.`,
  },
  FORBIDDEN: {
    means:
      'The token is good, but lacks a scope or does not list this taxpayer; only a router may ask for this; or the origin or the client certificate is not accepted.',
    status: `${atField}; 403 for a stream from an origin that is not in \`CORS_ORIGINS\`, for a callback subscription that is not allowed, and for a client without an accepted certificate`,
    brief: 'ask for the scope or the taxpayer',
    caller:
      'The message names the scope that is missing. Signing in again helps only when the new token has more rights.',
    operator: `Scopes and taxpayers are given by the identity provider; \`AUTH_SCOPES_CLAIM\`, \`AUTH_SCOPES_MAP\` and \`AUTH_TAXPAYERS_CLAIM\` say where they [stand in a token](../identity-providers.md). Audit lines of the ${log} with \`access-denied\` have the reason.`,
  },
  NOT_FOUND: {
    means: 'The service knows no taxpayer or job with this id.',
    status: atField,
    brief: 'check the id',
    caller: 'The answer is remembered: a taxpayer that the service learns of now may stay unknown here for 15 seconds.',
    operator: `Nothing. Very many of them come from a caller who tries ids: the ${log} names that caller by a hash.`,
  },
  IDEMPOTENCY_CONFLICT: {
    means: 'The `idempotencyKey` was used within a day, by the same caller, with another input.',
    status: atField,
    brief: 'use a new key for another input',
    caller: 'For the link that was created before, send the first input again.',
    operator: 'Nothing.',
  },
  OUTCOME_UNKNOWN: {
    means: 'The link may have been created: the request left, and no usable answer came back.',
    status: atField,
    brief: 'the link may exist: look before you create another',
    caller:
      'The same `idempotencyKey` gives this error for a day and never creates a second link. To create one all the same, use a new key.',
    operator: traceFault,
  },
  TOKEN_BUDGET_EXHAUSTED: {
    means: 'The calls to the token endpoint that the fleet, or this caller, may make in this clock hour are used up.',
    status: atField,
    brief: 'wait `retryAfterSeconds`',
    caller:
      'Records that are known are still shown, with `stale: true`. Ask for `maxAgeSeconds` only where you need it.',
    operator: `${alert('TokenBudgetLow')} and ${alert('TokenBudgetExhausted')}. \`TOKEN_BUDGET_PER_HOUR\` bounds the fleet, \`TOKEN_BUDGET_CALLER_SHARE\` one caller.`,
  },
  UPSTREAM_RATE_LIMITED: {
    means: 'The service asked for fewer calls. The fleet makes none until the time that the service named is over.',
    status: atField,
    brief: 'wait `retryAfterSeconds`',
    caller: 'Asking earlier gets the same error and does not reach the service.',
    operator: alert('ServiceRateLimits').concat('.'),
  },
  TAXPAYER_NOT_AUTHORIZED: {
    means: "The service refuses this taxpayer's token, a new one included, or refuses access to this taxpayer.",
    status: atField,
    brief: 'the taxpayer has to authorize: send a link',
    caller:
      'Create a link with `createClientLink`. After the taxpayer has signed, it may take a minute until a new token is tried.',
    operator: 'Nothing for one taxpayer. For all of them, ask the operators of the service.',
  },
  UPSTREAM_CREDENTIALS_REJECTED: {
    means: "The service refuses the gateway's own client id and secret. The caller did nothing wrong.",
    status: atField,
    brief: 'tell the operators',
    caller: 'Quote the `requestId`.',
    operator: `${alert('CredentialsRefused')}: check \`UPSTREAM_CLIENT_ID\` and \`UPSTREAM_CLIENT_SECRET\`.`,
  },
  UPSTREAM_REJECTED: {
    means: 'The service refuses this request and says that the request is the reason.',
    status: atField,
    brief: 'the service refuses this: check what was sent',
    caller: 'The service does not tell which part it refuses: compare the input with one that was accepted.',
    operator: `The ${log} has the status that the service answered, as \`cause\`.`,
  },
  UPSTREAM_TIMEOUT: {
    means: 'The service did not answer in time.',
    status: atField,
    brief: 'try again after `retryAfterSeconds`',
    caller: 'A query can be repeated as it is; a mutation only with an `idempotencyKey`.',
    operator: `${traceFault} \`UPSTREAM_TIMEOUT_MS\` bounds one try, \`UPSTREAM_DEADLINE_MS\` all of them.`,
  },
  UPSTREAM_UNAVAILABLE: {
    means: 'The service cannot be reached or fails, or has failed so often that it is left alone for a while.',
    status: atField,
    brief: 'try again after `retryAfterSeconds`',
    caller:
      'Nothing was created. A link with an `idempotencyKey` is refused like this as well while the shared store does not answer.',
    operator: `${traceFault} See ${alert('BreakerOpen')} and ${alert('StoreDown')}.`,
  },
  UPSTREAM_INVALID_RESPONSE: {
    means: 'The service answered with something that its contract excludes.',
    status: atField,
    brief: 'tell the operators',
    caller: 'Quote the `requestId`.',
    operator: `The ${log} names the member of the answer and what was expected, never its value. Tell the operators of the service.`,
  },
  AUTH_UNAVAILABLE: {
    means:
      'No usable key of the identity provider is known, so no token can be checked; or the decision point cannot say whether the caller may see a taxpayer.',
    status: `503; ${atField}`,
    brief: 'try again after `retryAfterSeconds`',
    caller: 'The token may be good: do not sign in again.',
    operator: `The machine must be able to read the key set; the ${log} has the cause, with \`a key set cannot be read\`. The same holds for the [decision point](../decision-point.md), with \`the decision point cannot decide\`.`,
  },
  RATE_LIMITED: {
    means: 'This caller is at one of its own limits; the message says at which.',
    status: `429; ${atField}, for one watch too many, or too many reads and creations, or decisions, at once`,
    brief: 'wait `retryAfterSeconds`; for a limit on what is held at once, end a stream first',
    caller:
      'Other callers are not affected. Where the limit is that of a minute, the header `RateLimit` says what is left.',
    operator: `The runbook tells [why a caller got a 429](../runbook.md#why-did-this-caller-get-a-429). The limits are \`RATE_LIMIT_PER_MINUTE\`, \`MAX_CONNECTIONS\`, \`MAX_SUBSCRIPTIONS\` and one caller's share of memory and work.`,
  },
  SHUTTING_DOWN: {
    means: 'This process is ending and takes no new streams.',
    status: '503',
    brief: 'try again after `retryAfterSeconds`',
    caller: 'Connect again: another process answers. The typed client does so by itself.',
    operator: 'Nothing during a roll-out. Otherwise look for what sends SIGTERM.',
  },
  INTERNAL_SERVER_ERROR: {
    means: 'A bug of the gateway.',
    status: `${atField}; 500 where nothing was executed`,
    brief: 'tell the operators',
    caller: 'Quote the `requestId`.',
    operator: `${alert('Bugs')}: the ${log} has it once, at level error, with the request id. Report it.`,
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

| May the same request succeed later? | HTTP status |
| --- | --- |
| ${again} | ${status} |

**Callers:** ${brief}. ${caller}

**Operators:** ${operator}
${causes.length === 0 ? '' : `\nIt is also what callers get when [the service](../faults.md)\n\n${causes.join('\n')}\n`}
[All codes](../errors.md); [the statuses](../graphql-over-http.md) for clients that accept \`application/json\` alone.
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

Every code that \`extensions.code\` can have. \`extensions.retryable\` says whether the same request may succeed later, and
\`retryAfterSeconds\` when. With \`DOCS_URL\`, \`extensions.docUrl\` links the page of the code.

| Code | Again | What callers do |
| --- | --- | --- |
${rows.join('\n')}
`;
}
