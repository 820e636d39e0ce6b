import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose';
import { z } from 'zod';
import { type GatewayError, sharedRefusal, withoutStack } from '../errors/errors.js';
import { allScopes, type Caller, callerKey, type Scope } from './caller.js';
import type { KeySource } from './keySet.js';
import { signatureAlgorithms } from './readKeySet.js';

export interface TokenPolicy {
  /** Accepted issuers, each with the keys that may sign for it and for no other. */
  readonly issuers: ReadonlyMap<string, KeySource>;
  /** A token must name one of these in `aud`. */
  readonly audience: readonly string[];
  /** The claim that lists the taxpayers a caller may see. */
  readonly taxpayersClaim: string;
  /** Claims that a decision point is told; undefined when none is asked. */
  readonly decisionClaims?: readonly string[] | undefined;
  readonly now: () => number;
}

export interface VerifiedToken {
  readonly caller: Caller;
  /** The first moment at which the token passes, in milliseconds since the epoch: `nbf` less the tolerance. */
  readonly validFrom: number;
  readonly source: KeySource;
  /** The version of the keys that verified it. */
  readonly version: number;
}

export const maxTokenLength = 8192;
const toleranceSeconds = 5;
/** At most the last second a Date can hold. */
const seconds = z.number().min(0).max(8.64e12);
/** What jose lets through: an empty or huge `sub`, times that are no finite number (`1e999`). */
const claimsSchema = z.object({
  sub: z.string().min(1).max(255),
  exp: seconds,
  nbf: seconds.default(0),
  iat: seconds.default(0),
});
const taxpayerIds = z.array(z.string().min(1).max(4096));

/** What a caller sees whose token has ended, also while they listen to a stream. */
export const tokenExpired = 'The access token has expired';
const malformed = 'The access token is malformed';
const notYetValid = 'The access token is not valid yet';
const wrongClaims: Readonly<Record<PropertyKey, string>> = {
  sub: 'The access token names no valid subject',
  exp: 'The access token has no valid expiry',
  aud: 'The access token is for another audience',
  nbf: notYetValid,
};

/**
 * Verifies a signed JWT (RFC 7519, with the advice of RFC 8725) and tells who its bearer is. Throws UNAUTHENTICATED with a
 * message that holds nothing of the token, or AUTH_UNAVAILABLE when the issuer's keys were never read.
 */
export async function verifyToken(token: string, policy: TokenPolicy): Promise<VerifiedToken> {
  const { payload, issuer, source, version } = await verifySignature(token, policy);
  const claims = claimsSchema.safeParse(payload);
  if (!claims.success) throw unauthenticated(wrongClaims[claims.error.issues[0]?.path[0] ?? ''] ?? malformed);
  const { sub: subject, exp, nbf, iat } = claims.data;
  const validFrom = (Math.max(nbf, iat) - toleranceSeconds) * 1000;
  if (validFrom > policy.now()) throw unauthenticated(notYetValid);
  const scopes = readScopes(payload);
  const taxpayers = scopes.has('taxpayers:any') ? 'any' : readTaxpayers(payload, policy.taxpayersClaim);
  const key = callerKey(issuer, subject);
  const properties = policy.decisionClaims && { ...chosen(payload, policy.decisionClaims), issuer };
  const caller: Caller = { kind: 'bearer', key, subject, scopes, taxpayers, properties, expiresAt: exp * 1000 };
  return { caller, validFrom, source, version };
}

export function unauthenticated(message: string): GatewayError {
  return sharedRefusal('UNAUTHENTICATED', message, { httpStatus: 401 });
}

/** Looks for newer keys once the held ones fail: the provider may have rotated them, with or without a new `kid`. */
async function verifySignature(token: string, policy: TokenPolicy) {
  // What can be refused without a key is refused first, so that it costs neither a signature check nor a key set.
  const { header, issuer } = decode(token);
  if (!signatureAlgorithms.some((algorithm) => algorithm === header.alg)) {
    throw unauthenticated('The access token is not signed with an accepted algorithm');
  }
  const source = typeof issuer === 'string' && policy.issuers.get(issuer);
  if (!source) throw unauthenticated('The access token names no issuer that is accepted here');
  for (;;) {
    const { keys, version } = await source.keysFor(header);
    for (const key of keys) {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: [...signatureAlgorithms],
          issuer,
          audience: [...policy.audience],
          requiredClaims: ['sub', 'exp'],
          clockTolerance: toleranceSeconds,
          currentDate: new Date(policy.now()),
        });
        return { payload, issuer, source, version };
      } catch (error) {
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw unauthenticated(refusalOf(error));
      }
    }
    if (!(await source.lookAgain(version))) {
      throw unauthenticated('The access token is not signed with a key that its issuer publishes');
    }
  }
}

function decode(token: string) {
  try {
    return withoutStack(() => ({ header: decodeProtectedHeader(token), issuer: decodeJwt(token).iss }));
  } catch {
    throw unauthenticated(malformed);
  }
}

/** Our own words: jose's errors carry the whole payload, so they are not kept as a cause either. */
function refusalOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return tokenExpired;
  return (error instanceof errors.JWTClaimValidationFailed && wrongClaims[error.claim]) || malformed;
}

/** `scope` as RFC 8693 section 4.2 writes it, or `scp` as some providers do; a text or a list in either. */
function readScopes(payload: JWTPayload): ReadonlySet<Scope> {
  const claim = Object.hasOwn(payload, 'scope') ? payload['scope'] : payload['scp'];
  const granted: unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
  return new Set(allScopes.filter((scope) => granted.includes(scope)));
}

/** Anything but an id or a list of ids grants nothing, so that a claim of another shape is never half understood. */
function readTaxpayers(payload: JWTPayload, name: string): ReadonlySet<string> {
  const claim = Object.hasOwn(payload, name) ? payload[name] : [];
  return new Set(taxpayerIds.safeParse(Array.isArray(claim) ? claim : [claim]).data);
}

function chosen(payload: JWTPayload, names: readonly string[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(names.flatMap((name) => (Object.hasOwn(payload, name) ? [[name, payload[name]]] : [])));
}
