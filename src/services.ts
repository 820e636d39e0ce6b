import { Quota } from './admission/Quota.js';
import { Sealer } from './cache/Sealer.js';
import { type Config, followSecrets } from './config/config.js';
import { startDatasources } from './datasources/startDatasources.js';
import type { startAgents } from './network/agents.js';
import { episodes } from './observability/episodes.js';
import { LineLimit } from './observability/LineLimit.js';
import type { Logger } from './observability/log.js';
import type { Metrics } from './observability/Metrics.js';
import { operationLog } from './observability/operationLog.js';
import { openStore, shownStore } from './stores/openStore.js';
import type { Store } from './stores/Store.js';
import { storeCause } from './stores/StoreError.js';

/** What every part of the gateway is started with. */
export interface Surroundings {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The HTTP agents of outgoing calls. */
  readonly agents: ReturnType<typeof startAgents>;
  /** Aborts when the gateway has stopped. */
  readonly stopped: AbortSignal;
}

export type RunningServices = Awaited<ReturnType<typeof startServices>>;

/** How often expired entries are removed from memory, in milliseconds. */
const cleanEveryMs = 600_000;

/** Starts everything between the resolvers and the service. @throws Error in plain words when the store cannot be opened */
export async function startServices(surroundings: Surroundings) {
  const { config, log, metrics } = surroundings;
  const sealer = new Sealer(config);
  const store = await openWatchedStore(surroundings);
  const lines = new LineLimit(log, sealer, config.TRUSTED_PROXIES !== undefined);
  const quota = new Quota(config.RATE_LIMIT_PER_MINUTE);
  const datasources = startDatasources({ ...surroundings, store, sealer, lines, quota });
  const { caches, forgets } = datasources;
  await forgets.start();
  const cleaning = setInterval(() => {
    for (const cache of caches) cache.dropExpired();
  }, cleanEveryMs).unref();
  metrics.showBudget(config.TOKEN_BUDGET_PER_HOUR);
  followSecrets(config, surroundings, (setting) => {
    // Without encryption keys, the secret names and seals what is stored: all of it has another name from now on.
    if (setting === 'UPSTREAM_CLIENT_SECRET' && sealer.renew()) forgets.forgetAll();
  });
  return {
    ...datasources,
    lines,
    logOperation: operationLog(lines, config.LOG_OPERATIONS),
    quota,
    /** Ends watches, connections, timers and the store. */
    stop: async () => {
      clearInterval(cleaning);
      datasources.stop();
      lines.flush();
      await store.close();
    },
  };
}

/** Opens the store of CACHE_URL; metrics and log show its times and its failures. Rejects as {@link openStore}. */
function openWatchedStore({ config, log, metrics }: Surroundings): Promise<Store> {
  const store = shownStore(config.CACHE_URL);
  const report = episodes({
    log,
    about: { store },
    begins: 'store unavailable, continuing without it',
    ends: 'store available again',
    level: 'error',
    quietMs: 0,
  });
  return openStore(config.CACHE_URL, {
    waitMs: config.DRAIN_TIMEOUT_MS,
    onCommand: metrics.onStoreCommand,
    onTrouble: (error) => {
      metrics.storeDegraded.set('', error ? 1 : 0);
      report(error?.trouble, error && storeCause(store, error));
    },
    onWait: () => log.info({ store }, 'another gateway uses the directory of CACHE_URL: waiting until it ends'),
    onDamaged: () => log.error('the file in the directory of CACHE_URL was damaged: what could be read of it is used'),
  });
}
