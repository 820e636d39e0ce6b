import type { Config } from './config/config.js';
import type { Agents } from './network/agents.js';
import type { Logger } from './observability/log.js';
import type { Metrics } from './observability/Metrics.js';

/** What every part of the gateway is started with. */
export interface Surroundings {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** How calls go to the service, with certificates of its own, and to the others: identity provider, decision point, collector. */
  readonly ways?: Readonly<Record<'service' | 'others', Agents>>;
}
