import { expect } from '@jest/globals';
import { Authenticator, type AuthenticatorOptions } from '../../src/auth/Authenticator.js';
import { loadConfig } from '../../src/config/config.js';
import type { Environment } from './gateway.js';
import type { IdentityProvider } from './identityProvider.js';

type Hooks = Pick<AuthenticatorOptions, 'onKeySetFailure' | 'onKeySetRead'>;

/** An authenticator that trusts these providers. Default audiences: `taxpayer-gateway` and `other-audience`. */
export function jwtAuthenticator(
  providers: readonly Pick<IdentityProvider, 'issuer' | 'jwksUrl'>[],
  { env = {}, ...hooks }: { env?: Environment } & Hooks = {},
): Authenticator {
  const { auth } = loadConfig({
    AUTH_MODE: 'jwt',
    AUTH_ISSUER: providers.map(({ issuer }) => issuer).join(),
    AUTH_JWKS_URL: providers.map(({ jwksUrl }) => jwksUrl).join(),
    AUTH_AUDIENCE: 'other-audience,taxpayer-gateway',
    ...env,
  });
  return new Authenticator({ ...auth, mode: 'jwt', ...hooks });
}

export function bearer(token: string): string {
  return `Bearer ${token}`;
}

/** The message that the caller sees. Fails the test unless the header is refused as UNAUTHENTICATED. */
export async function refusalOf(authenticator: Authenticator, authorization: string | undefined): Promise<string> {
  // The async function turns a synchronous throw into a rejection, as an `await` in a caller would.
  const refused: unknown = await (async () => authenticator.authenticate(authorization))().then(
    () => new Error('The token was accepted.'),
    (error) => error,
  );
  expect(refused).toMatchObject({ name: 'GatewayError', code: 'UNAUTHENTICATED', retryable: false });
  expect(refused).toMatchObject({ extensions: { http: { status: 401 } } });
  return (refused as Error).message;
}
