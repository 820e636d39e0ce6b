import { type ErrorCode, problemsOf } from 'taxpayer-gateway-client';

/** What a clerk can do about each code. */
const advice: Record<ErrorCode, string> = {
  GRAPHQL_PARSE_FAILED: 'This page sent something wrong. Please report it.',
  GRAPHQL_VALIDATION_FAILED: 'This page is older than the gateway. Reload it.',
  BAD_USER_INPUT: 'Correct what is listed below and send it again.',
  UNAUTHENTICATED: 'Your session has ended. Sign in again.',
  FORBIDDEN: 'You may not see this. Ask an administrator for access to the taxpayer.',
  NOT_FOUND: 'No taxpayer or job has this id.',
  IDEMPOTENCY_CONFLICT: 'This form was sent before with other contents. Start a new link.',
  OUTCOME_UNKNOWN: 'The link may exist although its address was lost. Look for it before you start a new one.',
  TOKEN_BUDGET_EXHAUSTED: 'The hourly allowance is spent. Wait, then try again.',
  UPSTREAM_RATE_LIMITED: 'The service is busy. Wait, then try again.',
  TAXPAYER_NOT_AUTHORIZED: 'The taxpayer has to authorize first: send a new link.',
  UPSTREAM_CREDENTIALS_REJECTED: 'Tell the operators: the service no longer accepts the gateway.',
  UPSTREAM_REJECTED: 'The service refused this. Check what was entered.',
  UPSTREAM_TIMEOUT: 'The service took too long. Try again.',
  UPSTREAM_UNAVAILABLE: 'The service is down. Try again in a moment.',
  UPSTREAM_INVALID_RESPONSE: 'Tell the operators: the service answered in a way it should not.',
  AUTH_UNAVAILABLE: 'Signing in does not work at the moment. Try again in a moment.',
  RATE_LIMITED: 'That was a lot at once. Wait, then try again.',
  SHUTTING_DOWN: 'The gateway is being replaced. Try again.',
  INTERNAL_SERVER_ERROR: 'Something broke in the gateway. Report it with the request id.',
};

/** Errors by code, with what to do. `onRetry` is offered where trying again may help. */
export function Problems({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const problems = problemsOf(error);
  const canRetry = onRetry !== undefined && problems.every(({ retryable }) => retryable);
  return (
    <div className="problem" role="alert">
      {problems.length === 0 && (
        <p>
          <strong>The gateway cannot be reached.</strong> Check the connection and try again.
        </p>
      )}
      {problems.map(({ code, retryAfterSeconds, requestId, violations, path }) => (
        <div key={`${code} ${path?.join('.')}`}>
          <p>
            <strong>{advice[code]}</strong>
          </p>
          {violations.length > 0 && (
            <ul>
              {violations.map(({ path, message }) => (
                <li key={path}>
                  <code>{path}</code> {message}
                </li>
              ))}
            </ul>
          )}
          <p className="fine">
            <code>{code}</code>
            {retryAfterSeconds !== undefined && <> · again in {retryAfterSeconds} s</>}
            {requestId !== undefined && <> · request {requestId}</>}
          </p>
        </div>
      ))}
      {canRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
