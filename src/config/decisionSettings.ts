import type { Expect, Parsed } from './settings.js';

/** The decision point; undefined without one. */
export function decisionOf(parsed: Parsed, env: Readonly<Record<string, string | undefined>>, expect: Expect) {
  const { AUTH_DECISION_URL: url, AUTH_DECISION_TOKEN: token, AUTH_DECISION_CLAIMS: claims = [] } = parsed;
  const needing = (['TOKEN', 'CLAIMS', 'TTL_SECONDS'] as const).map((name) => `AUTH_DECISION_${name}` as const);
  const beside = needing.filter((name) => env[name] || env[`${name}_FILE`]);
  const alone = `AUTH_DECISION_URL is missing: expected with ${beside.join(', ')}`;
  expect('AUTH_DECISION_URL', url !== undefined || beside.length === 0, alone);
  const tokenless = 'AUTH_DECISION_URL is about callers with access tokens: expected without AUTH_MODE=disabled';
  expect('AUTH_DECISION_URL', url === undefined || parsed.AUTH_MODE !== 'disabled', tokenless);
  if (url === undefined) return undefined;
  const tokenFile = env['AUTH_DECISION_TOKEN_FILE'] || undefined;
  return { url, token, tokenFile, claims, ttlMs: 1000 * parsed.AUTH_DECISION_TTL_SECONDS };
}
