import type { JWTPayload } from 'jose';

/** The `typ` header that marks an access token (RFC 9068 section 2.1). */
const accessTokenType = 'at+jwt';

/** Claims of ID tokens (OpenID Connect Core 1.0, sections 2 and 3.3.2.11) and of logout tokens (RFC 8417, section 2.2). */
const claimsOfOthers = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events'];

/** Normalizes a `typ` header for comparison: lower case, without `application/`. A token without one is a plain JWT. */
export function tokenType(typ: unknown = 'jwt'): string | undefined {
  return typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined;
}

/**
 * Whether a token shows that it is not an access token: an ID token may name the same audience. Some ID tokens do not show
 * it; a provider that marks access tokens with `at+jwt` lets us tell all of them apart.
 */
export function isOtherThanAccessToken({ typ }: { readonly typ?: unknown }, payload: JWTPayload): boolean {
  if (tokenType(typ) === accessTokenType) return false;
  // Keycloak names the kind in a claim, and wrote `nonce` into its access tokens before version 25. Cognito has `token_use`.
  const kind = payload['typ'];
  if (kind === 'Bearer' || kind === 'DPoP') return false;
  const isNamed =
    ['ID', 'Refresh', 'Offline', 'Logout'].some((other) => other === kind) || payload['token_use'] === 'id';
  return isNamed || claimsOfOthers.some((claim) => Object.hasOwn(payload, claim));
}
