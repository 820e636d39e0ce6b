import { DecisionPoint, type DecisionPointOptions } from '../auth/DecisionPoint.js';
import { Episode } from './Episode.js';
import type { Logger } from './log.js';
import type { Metrics } from './Metrics.js';

export interface Watching {
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** A decision point whose calls and troubles the operator sees. */
export function watchedDecisionPoint(
  options: Omit<DecisionPointOptions, 'onCall'>,
  { log, metrics }: Watching,
): DecisionPoint {
  const texts = { begins: 'the decision point cannot decide', ends: 'the decision point decides again' };
  const episode = new Episode({ log, ...texts });
  return new DecisionPoint({
    ...options,
    onCall: (call) => {
      metrics.onDecisionCall(call);
      if (call.outcome === 'ok') episode.worked();
      else episode.failed(call.outcome, call.cause ?? '');
    },
  });
}
