import { followSecret } from '../config/config.js';
import { Episode } from '../observability/Episode.js';
import type { Surroundings } from '../Surroundings.js';
import { Authenticator } from './Authenticator.js';
import { type Identify, identifier } from './identify.js';

export interface Authentication {
  readonly identify: Identify;
  reasonNotReady(): string | undefined;
  stop(): void;
}

/** Starts what tells who is calling: reads the key sets, and follows the secret of the router. */
export function startAuthentication({ config, log, metrics, ways }: Surroundings): Authentication {
  const { auth } = config;
  const texts = { begins: 'a key set cannot be read', ends: 'the key set can be read again', quietMs: 0 };
  const authenticator = new Authenticator(auth, {
    agentFor: ways?.others.agentFor,
    onKeysRead: (issuer) => {
      const episode = new Episode({ log, about: { issuer }, ...texts });
      return (failure) => episode.see(failure?.fault, failure?.message);
    },
  });
  metrics.showKeySets(() => authenticator.keySets.map(({ ageMs }) => ageMs));
  authenticator.start();
  if (auth.mode === 'disabled') log.warn('AUTH_MODE=disabled: everybody who can connect may see every taxpayer');
  let { routerSecrets } = config;
  const unfollow = followSecret(config, 'FEDERATION_SHARED_SECRET', log, (renewed) => {
    routerSecrets = renewed;
  });
  return {
    identify: identifier(authenticator, () => routerSecrets),
    reasonNotReady: () => authenticator.reasonNotReady(),
    stop: () => {
      unfollow();
      authenticator.stop();
    },
  };
}
