import type fetch from 'node-fetch';
import { FairQueue } from './admission/FairQueue.js';
import { boundsFor, Ledger } from './admission/Ledger.js';
import { WorkTime } from './admission/WorkTime.js';
import { leaseMarginMs } from './cache/LeasedCache.js';
import { SealedStore } from './cache/SealedStore.js';
import { type KeyMaterial, Sealer } from './cache/sealing.js';
import type { Config, UpstreamCredentials } from './config/config.js';
import type { Secret } from './config/secret.js';
import { watchSecretFile } from './config/watchFile.js';
import type { AuditEvent, Services } from './context.js';
import { ClientLinks } from './datasources/ClientLinks.js';
import { identifierReader } from './datasources/identifiers.js';
import { RefreshJobs } from './datasources/RefreshJobs.js';
import { TaxpayerService } from './datasources/TaxpayerService.js';
import { TokenBroker, type TokenBrokerOptions } from './datasources/TokenBroker.js';
import { jobWatcher, recordWatcher } from './datasources/watchers.js';
import type { Logger } from './observability/log.js';
import type { Metrics } from './observability/Metrics.js';
import type { Tracing } from './observability/Tracing.js';
import { openStore } from './stores/openStore.js';
import type { Store } from './stores/Store.js';
import { CallGate } from './upstream/CallGate.js';
import { ResilientFetch } from './upstream/ResilientFetch.js';

/** What every part is configured and watched by. */
export interface Surroundings {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | undefined;
}

export interface RunningServices extends Services {
  readonly sealed: SealedStore;
  readonly workTime: WorkTime;
  stopWatches(): void;
  /** Ends watches, connections, timers and the store. */
  stop(): Promise<void>;
}

/** Starts everything between the resolvers and the service. @throws Error in plain words when the store cannot be opened */
export async function startServices(
  surroundings: Surroundings & { readonly upstream: UpstreamCredentials },
): Promise<RunningServices> {
  const { config, upstream, log, metrics, tracing } = surroundings;
  const sealer = sealerFor(config, upstream);
  const { baseUrl, clientId, clientSecret } = upstream;
  const credentials = { clientId, clientSecret };
  const store = await openObservedStore(surroundings);
  const traced = tracing?.store(store) ?? store;
  const wired = wireServices({ ...surroundings, store: traced, sealer, baseUrl, credentials: () => credentials });
  metrics.showBudget(config.tokens.budgetPerHour);
  metrics.showBreakers((endpoint) => wired.http.breakerState(endpoint));
  const unwatch = followClientSecret(upstream, log, (secret) => {
    credentials.clientSecret = secret;
    if (config.cache.encryptionKey === undefined) sealer.rotate({ from: 'client-secret', secret });
  });
  return {
    ...wired,
    ...domainOf(surroundings, sealer),
    ledger: new Ledger(boundsFor(config.limits)),
    stop: async () => {
      unwatch();
      wired.stop();
      await store.close();
    },
  };
}

export interface Wiring extends Surroundings {
  readonly store: Store;
  readonly sealer: Sealer;
  readonly baseUrl: string;
  /** Asked for at each call, because the secret may be rotated while we run. */
  readonly credentials: () => { readonly clientId: string; readonly clientSecret: Secret };
  /** Epoch milliseconds. */
  readonly now?: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly monotonicNow?: () => number;
  readonly random?: () => number;
  /** Makes the HTTP requests. Default: node-fetch. */
  readonly fetch?: typeof fetch;
}

/** Wires what reads and writes at the service, over a store that is open; its `stop` ends watches and connections. */
export function wireServices(wiring: Wiring) {
  const { config, metrics, store, sealer, random, now = Date.now } = wiring;
  const scope = [wiring.baseUrl, wiring.credentials().clientId, config.service.apiVersion];
  const sealed = new SealedStore({ store, sealer, scope, now });
  const http = resilientFetch(wiring);
  const service = taxpayerService(wiring, http, sealed);
  const cache = {
    maxEntries: config.cache.maxEntries,
    workMs: config.service.deadlineMs,
    onRead: metrics.onRead,
    onLeaseWait: metrics.onLeaseWait,
  };
  const workTime = new WorkTime();
  const shared = { service, store: sealed, places: servicePlaces(config, workTime), now };
  const { onTokenEvent: onEvent, onBudget } = metrics;
  const onRecord: TokenBrokerOptions['onRecord'] = (id, view) => recordWatches.see(id, view);
  const broker = new TokenBroker({ ...shared, ...config.tokens, cache, onEvent, onBudget, onRecord });
  const jobs = new RefreshJobs({ ...shared, broker, cache });
  const jobWatches = jobWatcher({ ...config.jobs, jobs, now, onWatchers: (count) => metrics.jobWatchers.set(count) });
  const { watchMaxMs } = config.jobs;
  const onWatchers = (count: number) => metrics.recordWatchers.set(count);
  const recordWatches = recordWatcher({ broker, watchMaxMs, onWatchers, ...(random && { random }) });
  const workMs = config.service.deadlineMs + leaseMarginMs;
  const links = new ClientLinks({ ...shared, workMs, onOutcome: metrics.onLink });
  const stopWatches = () => {
    jobWatches.stop();
    recordWatches.stop();
  };
  const stop = () => {
    stopWatches();
    http.stop();
  };
  return { sealed, http, workTime, broker, jobs, jobWatches, recordWatches, links, stopWatches, stop };
}

function resilientFetch({ config, metrics, tracing, monotonicNow, random, fetch }: Wiring): ResilientFetch {
  return new ResilientFetch({
    ...config.service,
    ...(monotonicNow && { monotonicNow }),
    ...(random && { random }),
    ...(fetch && { fetch }),
    onTry: (...tried) => {
      metrics.onTry(...tried);
      tracing?.onTry(...tried);
    },
  });
}

function taxpayerService(wiring: Wiring, http: ResilientFetch, sealed: SealedStore): TaxpayerService {
  const { config, log, metrics, baseUrl, credentials, now, monotonicNow } = wiring;
  const { apiVersion } = config.service;
  const gate = new CallGate({
    store: sealed,
    now: now ?? Date.now,
    onClosed: (endpoint, reason) => {
      metrics.gateClosed.inc({ endpoint, reason });
      const message = 'the service asked for silence or refused the credentials: the fleet stops calling';
      log.warn({ endpoint, reason }, message);
    },
  });
  return new TaxpayerService({
    ...{ baseUrl, apiVersion, credentials, http, gate, maxDepth: config.limits.metadataDepth },
    ...(monotonicNow && { monotonicNow }),
    onForbidden: (endpoint) => {
      metrics.gateClosed.inc({ endpoint, reason: 'forbidden' });
      log.warn({ endpoint }, "the service forbids one caller's requests, whatever is in them: their calls stop");
    },
  });
}

/** About how long all steps of one read of the service keep the event loop busy, in milliseconds. */
const readWorkMs = 0.5;

/** What may be asked of the service at once and what may wait, by one caller and by all, each with its work on the store. */
function servicePlaces(config: Config, workTime: WorkTime): FairQueue {
  return new FairQueue({
    perHolder: 32,
    perProcess: 256,
    maxWaiting: 1000,
    maxWaitMs: config.service.deadlineMs,
    isContended: () => workTime.isContended,
    onEnter: (holder) => workTime.spend(holder, readWorkMs),
  });
}

function sealerFor({ cache }: Config, { clientSecret }: UpstreamCredentials): Sealer {
  const { encryptionKey: key, previousEncryptionKey: previous } = cache;
  const current: KeyMaterial = { from: key ? 'encryption-key' : 'client-secret', secret: key ?? clientSecret };
  return new Sealer(current, previous ? [{ from: 'encryption-key', secret: previous }] : []);
}

function openObservedStore({ config, log, metrics }: Surroundings) {
  return openStore(config.cache.url, {
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
}

/** Returns how to stop. */
function followClientSecret(upstream: UpstreamCredentials, log: Logger, rotate: (secret: Secret) => void): () => void {
  if (upstream.clientSecretFile === undefined) return () => {};
  return watchSecretFile(upstream.clientSecretFile, {
    minLength: 1,
    secret: upstream.clientSecret,
    onRotated: (secret) => {
      rotate(secret);
      log.info('the client secret was rotated');
    },
    onRefused: () => log.warn('the client secret is empty in its file: the one in use stays'),
  });
}

/** What the resolvers need besides the service itself. */
function domainOf({ config, log }: Surroundings, sealer: Sealer) {
  const auditLog = log.child({}, { redact: [] }); // its lines have fields of ours and no others
  return {
    ids: identifierReader(config.limits.idLength),
    maxMetadataDepth: config.limits.metadataDepth,
    maxAnswerBytes: config.limits.answerBytes,
    /** Callers by their key and taxpayers by a keyed hash, so that the log holds no names. */
    audit: ({ action, caller: { key: caller, kind: callerKind }, requestId, taxpayer, outcome }: AuditEvent) => {
      const who = { caller, callerKind, requestId };
      const what = { outcome, ...(taxpayer !== undefined && { taxpayer: sealer.digest('taxpayer', taxpayer) }) };
      auditLog.info({ audit: action, ...who, ...what }, 'audit');
    },
  };
}
