const final = { retryable: false } as const;
const retryable = { retryable: true } as const;

/** Every code a caller can meet, with whether the same request may succeed when simply sent again. */
export const errorCodes = {
  GRAPHQL_PARSE_FAILED: final,
  GRAPHQL_VALIDATION_FAILED: final,
  BAD_USER_INPUT: final,
  UNAUTHENTICATED: final,
  FORBIDDEN: final,
  NOT_FOUND: final,
  IDEMPOTENCY_CONFLICT: final,
  OUTCOME_UNKNOWN: final,
  TOKEN_BUDGET_EXHAUSTED: retryable,
  UPSTREAM_RATE_LIMITED: retryable,
  TAXPAYER_NOT_AUTHORIZED: final,
  UPSTREAM_CREDENTIALS_REJECTED: final,
  UPSTREAM_REJECTED: final,
  UPSTREAM_TIMEOUT: retryable,
  UPSTREAM_UNAVAILABLE: retryable,
  UPSTREAM_INVALID_RESPONSE: final,
  AUTH_UNAVAILABLE: retryable,
  RATE_LIMITED: retryable,
  SHUTTING_DOWN: retryable,
  INTERNAL_SERVER_ERROR: final,
} as const;

export type ErrorCode = keyof typeof errorCodes;
