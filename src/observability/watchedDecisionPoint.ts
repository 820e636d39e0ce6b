import { DecisionPoint, type DecisionPointOptions } from '../auth/DecisionPoint.js';
import { Episodes } from './Episodes.js';
import type { Logger } from './log.js';
import type { Metrics } from './Metrics.js';
import type { Tracing } from './Tracing.js';

export interface Watching {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | undefined;
}

/** A decision point whose calls and troubles the operator sees. */
export function watchedDecisionPoint(
  options: Omit<DecisionPointOptions, 'onCall'>,
  { log, metrics, tracing }: Watching,
): DecisionPoint {
  const texts = { begins: 'the decision point cannot decide', ends: 'the decision point decides again' };
  const episodes = new Episodes({ log, about: {}, ...texts });
  return new DecisionPoint({
    ...options,
    onCall: (call) => {
      metrics.onDecisionCall(call);
      tracing?.onDecisionCall(options.url, call);
      if (call.outcome === 'ok') episodes.worked();
      else episodes.failed(call.outcome, call.cause ?? '');
    },
  });
}
