import { SignJWT } from 'jose';
import { allScopes, type Scope } from './caller.js';
import type { TokenPolicy } from './verifyToken.js';

const algorithm = 'HS256';
const issuer = 'urn:taxpayer-gateway:developer';
const audience = 'taxpayer-gateway';
const taxpayersClaim = 'taxpayer_ids';
/** Anybody knows it, which gives nobody a right: in developer mode a caller without a token may do everything. */
const key = new TextEncoder().encode('the key of the developer mode, known to all');

/** Verifies tokens of {@link developerToken}. For AUTH_MODE=developer alone. */
export const developerPolicy: TokenPolicy = {
  algorithms: [algorithm],
  issuers: new Map([
    [
      issuer,
      {
        keys: { version: 0, fresh: true, find: async () => [key], lookAgain: async () => false },
        audience: [audience],
      },
    ],
  ]),
  rights: { scopesClaims: ['scope'], scopesMap: new Map(), taxpayersClaim },
  tokenTypes: ['jwt'],
};

/** A token that lets the local developer do no more than it says. */
export function developerToken(
  subject: string,
  scopes: readonly Scope[],
  taxpayers: readonly string[],
  ttlSeconds: number,
): Promise<string> {
  return new SignJWT({ scope: scopes.join(' '), [taxpayersClaim]: [...taxpayers] })
    .setProtectedHeader({ alg: algorithm })
    .setIssuer(issuer)
    .setAudience(audience)
    .setSubject(subject)
    .setIssuedAt()
    .setExpirationTime(`${ttlSeconds}s`)
    .sign(key);
}

/** For the explorers of the developer mode, where every caller is the local developer anyway. */
export async function developerHeaders(): Promise<Record<string, string>> {
  return { Authorization: `Bearer ${await developerToken('local-developer', allScopes, [], 86_400)}` };
}
