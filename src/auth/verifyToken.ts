import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import type { Config } from '../config/config.js';
import { unauthenticated } from '../errors/errors.js';
import { isNestedWithin } from '../process/json.js';
import { type Caller, callerKey } from './caller.js';
import type { KeySource } from './IssuerKeys.js';
import { claimAt, rightsIn } from './rights.js';

/** The signature algorithms a token may use (RFC 7518, RFC 8037, RFC 9864): asymmetric only. */
export const signatureAlgorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'];

/** The settings, and what verifies tokens. */
export interface TokenPolicy extends Config {
  /** Default: {@link signatureAlgorithms}. */
  readonly algorithms?: string[];
  /** By issuer, the keys that may sign for it, and for no other. */
  readonly keySets: ReadonlyMap<string, KeySource>;
}

export type VerifiedToken = Awaited<ReturnType<typeof verifyToken>>;

const toleranceSeconds = 5;
/** Levels of nested claims. A decision point may be told any claim, and `JSON.stringify` overflows the stack at some 4,000. */
const maxClaimsDepth = 64;
/** The last second since the epoch that a Date can hold. */
const maxSeconds = 8.64e12;
const maxSubject = 255;

/** Also the message for a caller whose token expires while a stream is open. */
export const tokenExpired = 'The access token has expired';
/** Also the message for the scheme DPoP (RFC 9449 section 7.1). */
export const boundTokenRefused =
  'The access token is bound to a key or a certificate (DPoP, cnf); the gateway does not support bound tokens';
/** Codes of jose for what is wrong with a token, whatever its key. Any other error may be mended by another key. */
const faultOfToken = /^ERR_(JWT_|JWS_INVALID|JOSE_NOT_SUPPORTED)/;
const malformed = 'The access token is malformed (RFC 7519)';
const unpublishedKey = 'The access token is not signed with a key that its issuer publishes';
const notYetValid = 'The access token is not valid yet (nbf, iat)';
const wrongClaims = {
  sub: 'The access token has no valid subject (sub): expected 1 to 255 characters',
  exp: 'The access token has no valid expiry (exp)',
  aud: 'The access token names no accepted audience (aud); an ID token names its client instead',
  nbf: notYetValid,
};

/**
 * Verifies a signed JWT (RFC 7519, with the advice of RFC 8725) and tells who its bearer is. Throws UNAUTHENTICATED with a
 * message that holds nothing of the token, or AUTH_UNAVAILABLE without usable keys of its issuer.
 */
export async function verifyToken(token: string, policy: TokenPolicy) {
  const { header, payload, issuer, keys, verifiedBy } = await verifySignature(token, policy);
  if (!isNestedWithin(payload, maxClaimsDepth)) throw unauthenticated(malformed);
  // jose lets through what it does not compare: an empty or huge `sub`, and times that are no finite number (`1e999`).
  const { sub: subject, exp = Infinity, iat = 0 } = payload;
  if (typeof subject !== 'string' || subject === '' || subject.length > maxSubject)
    throw unauthenticated(wrongClaims.sub);
  if (exp > maxSeconds) throw unauthenticated(wrongClaims.exp);
  if ((iat - toleranceSeconds) * 1000 > Date.now()) throw unauthenticated(notYetValid);
  if (isOtherThanAccessToken(header, payload)) {
    throw unauthenticated('This is not an access token but an ID token or another token of the issuer');
  }
  // RFC 7800. Who may use a bound token cannot be checked here, so it must not pass for a bearer token.
  if (payload['cnf'] !== undefined) throw unauthenticated(boundTokenRefused);
  const key = callerKey(issuer, subject);
  const properties = propertiesOf(payload, policy);
  const profile = properties && { subject, properties, key: callerKey(key, JSON.stringify(properties)) };
  const rights = rightsIn(payload, policy);
  const caller: Caller = { kind: 'bearer', key, holder: key, ...rights, profile, expiresAt: exp * 1000 };
  /** Whether the token still counts: its time is not over, and its issuer's keys are the ones that verified it. */
  const isGood = () => keys.current === verifiedBy && Date.now() < caller.expiresAt;
  return { caller, isGood };
}

/** What a decision point is told of the bearer; undefined where none is configured. */
function propertiesOf(payload: JWTPayload, { AUTH_DECISION_URL, AUTH_DECISION_CLAIMS = [] }: Config) {
  if (AUTH_DECISION_URL === undefined) return undefined;
  const chosen = AUTH_DECISION_CLAIMS.map((name) => [name, claimAt(payload, name)]);
  return { ...Object.fromEntries(chosen), issuer: payload.iss };
}

async function verifySignature(token: string, policy: TokenPolicy) {
  const { algorithms = signatureAlgorithms, keySets, AUTH_AUDIENCE: audience, AUTH_TOKEN_TYPES: tokenTypes } = policy;
  // Tokens that can be refused without a key are refused first: they must cost no signature check and no read of the key set.
  const { header, issuer } = decode(token);
  if (!algorithms.includes(String(header.alg))) {
    throw unauthenticated('The access token is not signed with an accepted algorithm (alg)');
  }
  if (!tokenTypes.some((type) => tokenType(type) === tokenType(header.typ))) {
    throw unauthenticated('The access token is not of an accepted type (typ)');
  }
  const keys = typeof issuer === 'string' && keySets.get(issuer);
  if (!keys) throw unauthenticated('The access token is not from an accepted issuer (iss)');
  const expected = { algorithms, issuer, audience, clockTolerance: toleranceSeconds };
  let verifiedBy = await keys.usable();
  for (;;) {
    try {
      const { payload } = await jwtVerify(token, verifiedBy, expected);
      return { header, payload, issuer, keys, verifiedBy };
    } catch (error) {
      if (faultOfToken.test((error as errors.JOSEError).code)) throw unauthenticated(refusalOf(error));
    }
    // The provider may have rotated its keys, with or without a new `kid`, and another request may have read them meanwhile.
    const unfit = verifiedBy;
    verifiedBy = await keys.usable(unfit);
    if (verifiedBy === unfit) throw unauthenticated(unpublishedKey);
  }
}

function decode(token: string) {
  try {
    return { header: decodeProtectedHeader(token), issuer: decodeJwt(token).iss };
  } catch {
    throw unauthenticated(
      'The access token is not a signed JWT (RFC 7519); opaque and encrypted tokens are not accepted',
    );
  }
}

/** Our own words: jose's errors carry the whole payload, so they are not kept as a cause either. */
function refusalOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return tokenExpired;
  const claim = error instanceof errors.JWTClaimValidationFailed ? error.claim : '';
  return (wrongClaims as Readonly<Record<string, string>>)[claim] ?? malformed;
}

/** The `typ` header that marks an access token (RFC 9068 section 2.1). */
const accessTokenType = 'at+jwt';

/** Claims of ID tokens (OpenID Connect Core 1.0, sections 2 and 3.3.2.11) and of logout tokens (RFC 8417, section 2.2). */
const claimsOfOthers = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events'];

/** Normalizes a `typ` header for comparison: lower case, without `application/`. A token without one is a plain JWT. */
function tokenType(typ: unknown = 'jwt'): string | undefined {
  return typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined;
}

/**
 * Whether a token shows that it is not an access token: an ID token may name the same audience. Some ID tokens do not show
 * it; a provider that marks access tokens with `at+jwt` lets us tell all of them apart.
 */
function isOtherThanAccessToken({ typ }: { readonly typ?: unknown }, payload: JWTPayload): boolean {
  if (tokenType(typ) === accessTokenType) return false;
  // Keycloak names the kind in a claim, and wrote `nonce` into its access tokens before version 25. Cognito has `token_use`.
  const kind = payload['typ'];
  if (kind === 'Bearer' || kind === 'DPoP') return false;
  const isNamed = ['ID', 'Refresh', 'Offline', 'Logout'].includes(kind as string) || payload['token_use'] === 'id';
  return isNamed || claimsOfOthers.some((claim) => Object.hasOwn(payload, claim));
}
