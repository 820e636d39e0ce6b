import type { Surroundings } from '../services.js';
import { Authenticator } from './Authenticator.js';
import { DecisionPoint } from './DecisionPoint.js';
import { IssuerKeys } from './IssuerKeys.js';

/** Starts what tells who is calling, and what decides about taxpayers that a token does not list, where that is configured. */
export function startAuthentication(surroundings: Surroundings) {
  const { config, metrics } = surroundings;
  const decisionUrl = config.AUTH_DECISION_URL;
  const keySets = new Map(config.issuers.map((each) => [each.issuer, new IssuerKeys(each, surroundings)]));
  const all = [...keySets.values()];
  for (const keys of all) void keys.start();
  metrics.showKeySets(() => all.map(({ ageMs }) => ageMs));
  return {
    authenticator: new Authenticator(config, keySets),
    decisions: decisionUrl === undefined ? undefined : new DecisionPoint(decisionUrl, surroundings),
    /** Why no caller can be authenticated: no key was ever read, or the last read is too long ago. */
    reasonNotReady: () => {
      const isUsable = all.length === 0 || all.some(({ current }) => current);
      return isUsable ? undefined : 'there is no usable key of the identity provider';
    },
  };
}
