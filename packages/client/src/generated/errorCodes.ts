/** Every code a caller can meet, with whether the same request may succeed when simply sent again. */
export const errorCodes = {
  GRAPHQL_PARSE_FAILED: { retryable: false },
  GRAPHQL_VALIDATION_FAILED: { retryable: false },
  BAD_USER_INPUT: { retryable: false },
  UNAUTHENTICATED: { retryable: false },
  FORBIDDEN: { retryable: false },
  NOT_FOUND: { retryable: false },
  IDEMPOTENCY_CONFLICT: { retryable: false },
  OUTCOME_UNKNOWN: { retryable: false },
  TOKEN_BUDGET_EXHAUSTED: { retryable: true },
  UPSTREAM_RATE_LIMITED: { retryable: true },
  TAXPAYER_NOT_AUTHORIZED: { retryable: false },
  UPSTREAM_CREDENTIALS_REJECTED: { retryable: false },
  UPSTREAM_REJECTED: { retryable: false },
  UPSTREAM_TIMEOUT: { retryable: true },
  UPSTREAM_UNAVAILABLE: { retryable: true },
  UPSTREAM_INVALID_RESPONSE: { retryable: false },
  AUTH_UNAVAILABLE: { retryable: true },
  RATE_LIMITED: { retryable: true },
  SHUTTING_DOWN: { retryable: true },
  INTERNAL_SERVER_ERROR: { retryable: false },
} as const satisfies Record<string, { readonly retryable: boolean }>;

export type ErrorCode = keyof typeof errorCodes;
