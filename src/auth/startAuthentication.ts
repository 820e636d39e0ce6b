import { episodes } from '../observability/episodes.js';
import type { Surroundings } from '../services.js';
import { Authenticator } from './Authenticator.js';
import { DecisionPoint } from './DecisionPoint.js';
import { IssuerKeys } from './IssuerKeys.js';

/** Starts what tells who is calling, and what decides about taxpayers that a token does not list, where that is configured. */
export function startAuthentication(surroundings: Surroundings) {
  const { config, log, metrics, agents, stopped } = surroundings;
  const issuers = config.issuers.map(({ issuer, jwksUrl }) => {
    const report = episodes({
      log,
      about: { issuer },
      begins: 'a key set cannot be read',
      ends: 'the key set can be read again',
      quietMs: 0,
    });
    const keys = new IssuerKeys({
      issuer,
      jwksUrl,
      agentFor: agents.others.agentFor,
      maxAgeMs: 1000 * config.AUTH_KEYS_MAX_AGE_SECONDS,
      onRead: (failure) => report(failure?.kind, failure?.reason),
      stopped,
    });
    void keys.start();
    return { issuer, keys };
  });
  metrics.showKeySets(() => issuers.map(({ keys }) => keys.ageMs));
  return {
    authenticator: new Authenticator(config, new Map(issuers.map(({ issuer, keys }) => [issuer, keys]))),
    decisions: decisionPoint(surroundings),
    /** Why no caller can be authenticated: no key was ever read, or the last read is too long ago. */
    reasonNotReady: () => {
      const isUsable = issuers.length === 0 || issuers.some(({ keys }) => keys.current);
      return isUsable ? undefined : 'there is no usable key of the identity provider';
    },
  };
}

function decisionPoint({ config, log, metrics, agents }: Surroundings) {
  const { AUTH_DECISION_URL: url, AUTH_DECISION_TOKEN: token } = config;
  if (url === undefined) return undefined;
  const report = episodes({
    log,
    begins: 'the decision point cannot decide',
    ends: 'the decision point decides again',
  });
  return new DecisionPoint({
    url,
    token,
    ttlMs: 1000 * config.AUTH_DECISION_TTL_SECONDS,
    agentFor: agents.others.agentFor,
    onCall: (outcome, seconds, reason) => {
      metrics.onDecisionCall(outcome, seconds);
      report(outcome === 'ok' ? undefined : outcome, reason);
    },
  });
}
