import { CallQueue } from '../admission/CallQueue.js';
import { boundsFor, type Holder, Places } from '../admission/Places.js';
import type { Quota } from '../admission/Quota.js';
import { Forgets } from '../cache/Forgets.js';
import { leaseMarginMs } from '../cache/LeasedCache.js';
import { SealedStore, type SealedStoreOptions } from '../cache/SealedStore.js';
import type { LineLimit } from '../observability/LineLimit.js';
import type { Surroundings } from '../services.js';
import { ResilientFetch, type ResilientFetchOptions } from '../upstream/ResilientFetch.js';
import { ClientLinks } from './ClientLinks.js';
import { RefreshJobs } from './RefreshJobs.js';
import { TaxpayerService } from './TaxpayerService.js';
import { TokenBroker } from './TokenBroker.js';

interface DatasourcesOptions
  extends Omit<Surroundings, 'stopped'>,
    Pick<SealedStoreOptions, 'store' | 'sealer'>,
    Pick<ResilientFetchOptions, 'fetch'> {
  /** Each creation, and each read that memory cannot answer, waits for its turn, and is charged. */
  readonly quota?: Quota;
  readonly lines?: LineLimit;
}

/** Most calls of one caller's queries that wait for a place. */
const maxQueries = 1000;
/** Bytes of an entry that take another millisecond to read, unpack and check. */
const bytesPerMs = 100_000;

/** Starts what reads and writes at the service, over a store that is open. */
export function startDatasources(options: DatasourcesOptions) {
  const { config, metrics, agents, store, sealer, fetch, lines, quota } = options;
  const { UPSTREAM_DEADLINE_MS: deadlineMs } = config;
  const keepMs = config.STORE_TTL_DAYS * 86_400_000;
  const sealed = new SealedStore({ store, sealer, ...config });
  const http = new ResilientFetch({ ...config, fetch, agents: agents.service, onTry: metrics.onTry });
  const service = new TaxpayerService({ ...options, http, store: sealed });
  const bounds = boundsFor(config);
  const places = new Places(bounds);
  const queueing = { places, maxWaitMs: deadlineMs, quota };
  const calls = new CallQueue({ ...queueing, resource: 'calls', maxWaiting: maxQueries });
  // The decisions of all watches of a caller may expire together.
  const maxWaiting = maxQueries + bounds.watches.perHolder;
  const decisionCalls = new CallQueue({ ...queueing, resource: 'decisions', maxWaiting });
  const onBytes = (holder: Holder, bytes: number) => quota?.spend(holder, bytes / bytesPerMs);
  const shared = {
    ...config,
    store: sealed,
    service,
    calls,
    workMs: deadlineMs,
    keepMs,
    places,
    metrics,
    onRead: metrics.onRead,
    onBytes,
  };
  const broker = new TokenBroker(shared);
  const jobs = new RefreshJobs({ ...shared, broker });
  const links = new ClientLinks({ ...shared, workMs: deadlineMs + leaseMarginMs });
  // A third cache would take another eighth of the heap (`memoryBytes`), and change the numbers that `LeasedCache.ts` says are in
  // docs/token-broker.md.
  const caches = [broker.cache, jobs.cache];
  const forgets = new Forgets({
    store: sealed,
    keepers: [...caches, broker, jobs.watches, broker.watches],
    onForgotten: ({ id: requestId, subject: taxpayer }) =>
      lines?.audit({ action: 'taxpayer-forgotten', outcome: 'no longer in memory', requestId, taxpayer }),
  });
  const stopWatches = () => {
    jobs.watches.stop();
    broker.watches.stop();
  };
  const stop = () => {
    forgets.stop();
    stopWatches();
  };
  return {
    sealed,
    caches,
    places,
    decisionCalls,
    broker,
    jobs,
    links,
    forgets,
    stopWatches,
    stop,
  };
}
