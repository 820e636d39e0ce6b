import { Sealer } from '../../src/cache/Sealer.js';
import { type Config, loadConfig } from '../../src/config/config.js';
import { Secret } from '../../src/config/Secret.js';
import { startDatasources } from '../../src/datasources/startDatasources.js';
import { startAgents } from '../../src/network/agents.js';
import { createLogger } from '../../src/observability/log.js';
import { Metrics } from '../../src/observability/Metrics.js';
import { guarded } from '../../src/stores/guarded.js';
import type { SimulatedService } from './SimulatedService.js';
import type { StoreLine } from './StoreLine.js';
import type { World } from './World.js';

/** The configuration of a simulated process; `settings` are environment variables. */
export function configOf(settings: Readonly<Record<string, string>>): Config {
  return loadConfig({
    UPSTREAM_BASE_URL: 'http://service.invalid',
    UPSTREAM_CLIENT_ID: 'simulated',
    UPSTREAM_CLIENT_SECRET: 'secret-0',
    AUTH_MODE: 'disabled',
    ...settings,
  });
}

// The real classes need a metrics object; nothing reads it.
export const metrics = new Metrics();
export const log = createLogger('silent', { write: () => {} });

interface Parts {
  readonly world: World;
  readonly node: number;
  readonly line: StoreLine;
  readonly config: Config;
  readonly fetch: ReturnType<SimulatedService['fetchFor']>;
  /** The client secret that its file holds now. */
  readonly secret: () => string;
}

/** The real classes of one process, wired as the product wires them, over a simulated world. */
export function wireProcess({ world, node, line, config, fetch, secret }: Parts) {
  const state = { isDegraded: false };
  const store = guarded(line, {
    onTrouble: (error) => {
      state.isDegraded = error !== undefined;
      world.tell(`node ${node}`, error ? `goes on alone: ${error.trouble}` : 'uses the store again');
    },
  });
  const clientSecret = new Secret(secret());
  const own = { ...config, UPSTREAM_CLIENT_SECRET: clientSecret };
  const sealer = new Sealer(own);
  const wired = startDatasources({
    config: own,
    ...{ log, metrics, agents: startAgents(config), store, sealer },
    fetch: fetch as never,
  });
  /** Reads the secret file again. */
  const rotate = () => {
    clientSecret.renew(secret());
    sealer.renew();
    wired.forgets.forgetAll();
  };
  return { store, state, wired, rotate };
}
