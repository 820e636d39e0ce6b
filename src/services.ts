import { FairQueue } from './admission/FairQueue.js';
import { boundsFor, Ledger } from './admission/Ledger.js';
import { WorkTime } from './admission/WorkTime.js';
import { leaseMarginMs } from './cache/LeasedCache.js';
import { SealedStore } from './cache/SealedStore.js';
import { type KeyMaterial, Sealer } from './cache/sealing.js';
import { openStore } from './cache/stores/openStore.js';
import type { Config, UpstreamCredentials } from './config/config.js';
import type { Secret } from './config/secret.js';
import { watchSecretFile } from './config/watchFile.js';
import type { AuditEvent, Services } from './context.js';
import { ClientLinks } from './datasources/ClientLinks.js';
import { identifierReader } from './datasources/identifiers.js';
import { JobWatcher } from './datasources/JobWatcher.js';
import { RefreshJobs } from './datasources/RefreshJobs.js';
import { TaxpayerService } from './datasources/TaxpayerService.js';
import { TokenBroker } from './datasources/TokenBroker.js';
import type { Logger } from './observability/log.js';
import type { Metrics } from './observability/Metrics.js';
import type { Tracing } from './observability/tracing/Tracing.js';
import { CallGate } from './upstream/CallGate.js';
import { ResilientFetch } from './upstream/ResilientFetch.js';

export interface ServicesOptions {
  readonly config: Config;
  readonly upstream: UpstreamCredentials;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | undefined;
}

export interface RunningServices extends Services {
  readonly sealed: SealedStore;
  readonly workTime: WorkTime;
  /** Ends watches, connections, timers and the store. */
  stop(): Promise<void>;
}

/**
 * What may be asked of the service at once, by one caller and by all, each with its work on the store; and what one caller
 * may have waiting.
 */
const servicePlaces = { perHolder: 32, perProcess: 256, maxWaiting: 1000 };

/** About how long all steps of one read of the service keep the event loop busy, in milliseconds. */
const readWorkMs = 0.5;

/** Wires everything between the resolvers and the service. @throws Error in plain words when the store cannot be opened */
export async function startServices(options: ServicesOptions): Promise<RunningServices> {
  const { config, upstream, log, metrics, tracing } = options;
  const sealer = new Sealer(keyMaterial(config, upstream.clientSecret), previousKeys(config));
  const store = await openStore(config.cache.url, {
    onDegraded: (trouble) => {
      metrics.storeDegraded.set(1);
      log.error({ trouble }, 'the shared store does not answer: this process goes on by itself');
    },
    onRecovered: (durationMs) => {
      metrics.storeDegraded.set(0);
      log.info({ durationMs }, 'the shared store answers again');
    },
    onSetAside: (file) => {
      metrics.storeSetAside.inc();
      log.error({ file }, 'the database in the directory of CACHE_URL was damaged: it is renamed and a new one begun');
    },
  });
  const scope = [upstream.baseUrl, upstream.clientId, config.service.apiVersion];
  const sealed = new SealedStore({ store: tracing?.store(store) ?? store, sealer, scope });

  const http = new ResilientFetch({
    ...config.service,
    onTry: (...tried) => {
      metrics.onTry(...tried);
      tracing?.onTry(...tried);
    },
  });
  metrics.showBreakers((endpoint) => http.breakerState(endpoint));
  const gate = new CallGate({
    store: sealed,
    onClosed: (endpoint, reason) => {
      metrics.gateClosed.inc({ endpoint, reason });
      log.warn(
        { endpoint, reason },
        'the service asked for silence or refused the credentials: the fleet stops calling',
      );
    },
  });
  const credentials = { clientId: upstream.clientId, clientSecret: upstream.clientSecret };
  const service = new TaxpayerService({
    baseUrl: upstream.baseUrl,
    apiVersion: config.service.apiVersion,
    credentials: () => credentials,
    http,
    gate,
    maxDepth: config.limits.metadataDepth,
    onForbidden: (endpoint) => {
      metrics.gateClosed.inc({ endpoint, reason: 'forbidden' });
      log.warn({ endpoint }, "the service forbids one caller's requests, whatever is in them: their calls stop");
    },
  });
  const cache = {
    maxEntries: config.cache.maxEntries,
    workMs: config.service.deadlineMs,
    onRead: metrics.onRead,
    onLeaseWait: (kind: string, seconds: number) => metrics.leaseWaitSeconds.observe({ kind }, seconds),
  };
  const workTime = new WorkTime();
  const places = new FairQueue({
    things: 'reads and creations at the service',
    ...servicePlaces,
    maxWaitMs: config.service.deadlineMs,
    isContended: () => workTime.isContended,
    onEnter: (holder) => workTime.spend(holder, readWorkMs),
  });
  metrics.showBudget(config.tokens.budgetPerHour);
  const broker = new TokenBroker({
    service,
    store: sealed,
    places,
    freshMs: config.tokens.freshMs,
    budgetPerHour: config.tokens.budgetPerHour,
    budgetCallerShare: config.tokens.budgetCallerShare,
    cache,
    onEvent: metrics.onTokenEvent,
    onBudget: metrics.onBudget,
  });
  const jobs = new RefreshJobs({ service, broker, store: sealed, places, cache });
  const watcher = new JobWatcher({ ...config.jobs, jobs, onWatchers: (count) => metrics.watchers.set(count) });
  const links = new ClientLinks({
    service,
    store: sealed,
    places,
    workMs: config.service.deadlineMs + leaseMarginMs,
    onOutcome: metrics.onLink,
  });
  const pseudonym = (id: string) => sealer.digest('taxpayer', id);

  const unwatch = upstream.clientSecretFile
    ? watchSecretFile(upstream.clientSecretFile, {
        minLength: 1,
        current: () => credentials.clientSecret,
        onRotated: (secret) => {
          credentials.clientSecret = secret;
          if (config.cache.encryptionKey === undefined) sealer.rotate({ from: 'client-secret', secret });
          log.info('the client secret was rotated');
        },
        onRefused: () => log.warn('the client secret is empty in its file: the one in use stays'),
      })
    : () => {};

  // Its lines have the fields of `auditLine` and no others, so that there is nothing to look for and to strike out.
  const auditLog = log.child({}, { redact: [] });

  return {
    broker,
    jobs,
    watcher,
    links,
    sealed,
    workTime,
    ledger: new Ledger(boundsFor(config.limits)),
    ids: identifierReader(config.limits.idLength),
    maxMetadataDepth: config.limits.metadataDepth,
    maxAnswerBytes: config.limits.answerBytes,
    pseudonym,
    audit: (event) => auditLog.info(auditLine(event, pseudonym), 'audit'),
    stop: async () => {
      unwatch();
      watcher.stop();
      http.stop();
      await store.close();
    },
  };
}

function keyMaterial(config: Config, clientSecret: Secret): KeyMaterial {
  const { encryptionKey } = config.cache;
  return encryptionKey
    ? { from: 'encryption-key', secret: encryptionKey }
    : { from: 'client-secret', secret: clientSecret };
}

function previousKeys(config: Config): KeyMaterial[] {
  const { previousEncryptionKey } = config.cache;
  return previousEncryptionKey ? [{ from: 'encryption-key', secret: previousEncryptionKey }] : [];
}

/** Who did what to whom: callers by their key and taxpayers by a keyed hash, so that the log names nobody. */
function auditLine({ action, caller, requestId, taxpayer, outcome }: AuditEvent, pseudonym: (id: string) => string) {
  return {
    audit: action,
    caller: caller.key,
    callerKind: caller.kind,
    requestId,
    outcome,
    ...(taxpayer !== undefined && { taxpayer: pseudonym(taxpayer) }),
  };
}
