import { followSecret } from '../config/config.js';
import type { Secret } from '../config/secret.js';
import { Episode } from '../observability/Episode.js';
import type { Surroundings } from '../Surroundings.js';
import { Authenticator } from './Authenticator.js';
import { type DecisionCall, DecisionPoint } from './DecisionPoint.js';
import { identifier } from './identify.js';

/** Starts what tells who is calling, and what decides about taxpayers that a token does not list, where that is configured. */
export function startAuthentication(surroundings: Surroundings) {
  const { config, log, metrics, ways } = surroundings;
  const { auth } = config;
  const texts = { begins: 'a key set cannot be read', ends: 'the key set can be read again', quietMs: 0 };
  const authenticator = new Authenticator(auth, {
    agentFor: ways.others.agentFor,
    onKeysRead: (issuer) => {
      const episode = new Episode({ log, about: { issuer }, ...texts });
      return (failure) => episode.see(failure?.fault, failure?.message);
    },
  });
  metrics.showKeySets(() => authenticator.keySets.map(({ ageMs }) => ageMs));
  authenticator.start();
  if (auth.mode === 'disabled') log.warn('AUTH_MODE=disabled: everybody who can connect may see every taxpayer');
  let { routerSecrets } = config;
  let decisionToken = auth.decision?.token;
  const unfollow = [
    followSecret(config, 'FEDERATION_SHARED_SECRET', log, (renewed) => {
      routerSecrets = renewed;
    }),
    followSecret(config, 'AUTH_DECISION_TOKEN', log, (renewed) => {
      decisionToken = renewed;
    }),
  ];
  return {
    identify: identifier(authenticator, () => routerSecrets),
    decisions: decisionPoint(surroundings, () => decisionToken),
    reasonNotReady: () => authenticator.reasonNotReady(),
    stop: () => {
      for (const stop of unfollow) stop();
      authenticator.stop();
    },
  };
}

function decisionPoint({ config, log, metrics, ways }: Surroundings, token: () => Secret | undefined) {
  const { decision } = config.auth;
  if (decision === undefined) return undefined;
  const texts = { begins: 'the decision point cannot decide', ends: 'the decision point decides again' };
  const episode = new Episode({ log, ...texts });
  const onCall = (call: DecisionCall) => {
    metrics.onDecisionCall(call);
    episode.see(call.outcome === 'ok' ? undefined : call.outcome, call.cause);
  };
  return new DecisionPoint({ ...decision, token, agent: ways.others.agentFor, onCall });
}
