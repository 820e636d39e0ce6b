import type { Config } from './config/config.js';
import type { startAgents } from './network/agents.js';
import type { Logger } from './observability/log.js';
import type { Metrics } from './observability/Metrics.js';

/** What every part of the gateway is started with. */
export interface Surroundings {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The HTTP agents of outgoing calls. */
  readonly agents: ReturnType<typeof startAgents>;
}
