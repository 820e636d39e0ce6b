import { expect } from '@jest/globals';
import { Authenticator } from '../../src/auth/Authenticator.js';
import { realRuntime } from '../../src/process/Runtime.js';
import type { IdentityProvider } from './identityProvider.js';

/** An authenticator that trusts these providers, with the audiences `taxpayer-gateway` and `other-audience`. */
export function jwtAuthenticator(providers: readonly IdentityProvider[], now: () => number = Date.now): Authenticator {
  return new Authenticator({
    mode: 'jwt',
    issuers: providers.map(({ issuer, jwksUrl }) => ({ issuer, jwksUrl })),
    audience: ['other-audience', 'taxpayer-gateway'],
    taxpayersClaim: 'taxpayer_ids',
    runtime: { ...realRuntime, now, monotonicNow: now },
  });
}

export function bearer(token: string): string {
  return `Bearer ${token}`;
}

/** Fails unless the header is refused as the caller's fault; gives the message the caller sees. */
export async function refusalOf(authenticator: Authenticator, authorization: string | undefined): Promise<string> {
  // What is thrown at once becomes a rejection here, as for every caller that awaits.
  const refused: unknown = await (async () => authenticator.authenticate(authorization))().then(
    () => new Error('The token was accepted.'),
    (error) => error,
  );
  expect(refused).toMatchObject({ name: 'GatewayError', code: 'UNAUTHENTICATED', retryable: false });
  expect(refused).toMatchObject({ extensions: { http: { status: 401 } } });
  return (refused as Error).message;
}
