import type { Environment } from './gateway.js';
import { startIdentityProvider } from './identityProvider.js';

/** An identity provider, and the settings that make a gateway trust it. */
export async function startTrustedProvider() {
  const provider = await startIdentityProvider();
  const env: Environment = {
    AUTH_MODE: 'jwt',
    AUTH_JWKS_URL: provider.jwksUrl,
    AUTH_ISSUER: provider.issuer,
    AUTH_AUDIENCE: provider.audience,
  };
  return {
    ...provider,
    env,
    /** The Authorization header of a caller who may watch the jobs of these taxpayers. */
    watcherOf: async (taxpayers: readonly string[], expiresIn = 300, scope = 'refresh-jobs:read taxpayers:read') =>
      `Bearer ${await provider.token({ scope, taxpayer_ids: taxpayers }, { expiresIn })}`,
  };
}

export type TrustedProvider = Awaited<ReturnType<typeof startTrustedProvider>>;
