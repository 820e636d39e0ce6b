import { CallQueue } from './admission/CallQueue.js';
import { boundsFor, type Holder, Places } from './admission/Places.js';
import { Quota } from './admission/Quota.js';
import { type DecisionCall, DecisionPoint } from './auth/DecisionPoint.js';
import { Forgets, type MemoryKeeper } from './cache/Forgets.js';
import { leaseMarginMs } from './cache/keepLease.js';
import { SealedStore, scopeOf } from './cache/SealedStore.js';
import { Sealer } from './cache/sealing.js';
import { followSecret, type UpstreamCredentials } from './config/config.js';
import type { Secret } from './config/secret.js';
import type { Services } from './context/RequestContext.js';
import { ClientLinks } from './datasources/ClientLinks.js';
import { identifierReader } from './datasources/identifiers.js';
import { RefreshJobs, type RefreshJobsOptions } from './datasources/RefreshJobs.js';
import { TaxpayerService } from './datasources/TaxpayerService.js';
import { TokenBroker, type TokenBrokerOptions } from './datasources/TokenBroker.js';
import { jobWatcher, recordWatcher } from './datasources/watchers.js';
import { Agents } from './network/agents.js';
import { AuditLog } from './observability/AuditLog.js';
import { Episode } from './observability/Episode.js';
import { LineLimit } from './observability/LineLimit.js';
import type { Logger } from './observability/log.js';
import { OperationLog } from './observability/OperationLog.js';
import { openWatchedStore } from './observability/watchedStore.js';
import type { UntrustedDocument } from './operations/TrustedDocuments.js';
import type { Surroundings } from './Surroundings.js';
import type { Store } from './stores/Store.js';
import { Pauses } from './upstream/Pauses.js';
import { type Endpoint, ResilientFetch, type ResilientFetchOptions } from './upstream/ResilientFetch.js';

export interface RunningServices extends Services {
  readonly operationLog: OperationLog;
  readonly onUntrusted: (untrusted: UntrustedDocument) => void;
  readonly quota: Quota;
  /** The queue that everything under way at the service passes. */
  readonly calls: CallQueue;
  stopWatches(): void;
  /** Ends watches, connections, timers and the store. */
  stop(): Promise<void>;
}

/** Estimate of how long one read of the service, with all its steps, keeps the event loop busy, in milliseconds. */
const readWorkMs = 0.5;
/** How often expired entries are removed from memory, in milliseconds. */
const cleanEveryMs = 600_000;

/** Starts everything between the resolvers and the service. @throws Error in plain words when the store cannot be opened */
export async function startServices(
  surroundings: Surroundings & { readonly upstream: UpstreamCredentials },
): Promise<RunningServices> {
  const { config, upstream, log, metrics, ways } = surroundings;
  const sealer = Sealer.of(config.cache, upstream.clientSecret);
  const { baseUrl, clientId, clientSecret } = upstream;
  const { decision } = config.auth;
  const credentials = { clientId, clientSecret, decisionToken: decision?.token };
  const store = await openWatchedStore(surroundings);
  const lines = new LineLimit(log, sealer, config.trustedProxies !== undefined);
  const audit = new AuditLog(lines, config.audit);
  const whole = { ...surroundings, store, sealer, baseUrl, credentials: () => credentials };
  const onCall = (holder: Holder) => quota.spend(holder, readWorkMs);
  const wired = wireServices({ ...whole, audit, onCall });
  const quota = new Quota({ store: wired.sealed, perMinute: config.limits.requestsPerMinute });
  if (store.kind === 'redis') await wired.forgets.start();
  const cleaning = setInterval(() => {
    wired.broker.dropExpired();
    wired.jobs.dropExpired();
  }, cleanEveryMs).unref();
  metrics.showBudget(config.tokens.budgetPerHour);
  metrics.showBreakers((endpoint) => wired.http.isOpen(endpoint));
  const agent = ways?.others.agentFor;
  const token = () => credentials.decisionToken;
  const decisions = decision && new DecisionPoint({ ...decision, token, agent, onCall: onDecisionCall(surroundings) });
  const unfollow = [
    followSecret(config, 'UPSTREAM_CLIENT_SECRET', log, (secret) => {
      credentials.clientSecret = secret;
      if (config.cache.encryptionKeys.length > 0) return;
      sealer.replace({ from: 'client-secret', secret });
      wired.forgets.forgetAll();
    }),
    followSecret(config, 'AUTH_DECISION_TOKEN', log, (renewed) => {
      credentials.decisionToken = renewed;
    }),
  ];
  return {
    ...wired,
    audit,
    operationLog: new OperationLog(lines, config.operationLog),
    onUntrusted: (untrusted) => tellUntrusted(lines, untrusted),
    ids: identifierReader(config.limits.idLength),
    maxMetadataDepth: config.limits.metadataDepth,
    maxAnswerBytes: config.limits.answerBytes,
    quota,
    decisions,
    stop: async () => {
      for (const stop of unfollow) stop();
      clearInterval(cleaning);
      quota.stop();
      wired.stop();
      lines.flush();
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
  /** Called for each read and creation at the service. */
  readonly onCall?: (holder: Holder) => void;
  /** Makes the HTTP requests. Default: node-fetch. */
  readonly fetch?: ResilientFetchOptions['fetch'];
  readonly audit?: AuditLog;
}

/** Wires what reads and writes at the service, over a store that is open; its `stop` ends watches and connections. */
export function wireServices(wiring: Wiring) {
  const { config, metrics, store, sealer } = wiring;
  const scope = scopeOf(wiring.baseUrl, wiring.credentials().clientId, config.service.apiVersion);
  const sealed = new SealedStore({ store, sealer, scope });
  const http = resilientFetch(wiring);
  const episodes = endpointEpisodes(wiring.log);
  const service = taxpayerService(wiring, http, sealed, episodes);
  const cache = {
    maxEntries: config.cache.maxEntries,
    workMs: config.service.deadlineMs,
    onRead: metrics.onRead,
  };
  const { keepMs } = config.cache;
  const places = new Places(boundsFor(config.limits));
  const { deadlineMs } = config.service;
  const calls = new CallQueue({ places, maxWaiting: 1000, maxWaitMs: deadlineMs, onEnter: wiring.onCall });
  const shared = { service, store: sealed, calls, keepMs };
  const { onTokenEvent: onEvent, onBudget } = metrics;
  const onRecord: TokenBrokerOptions['onRecord'] = (id, view) => recordWatches.see(id, view);
  const longestPauseMs = config.service.breakerResetMs;
  const broker = new TokenBroker({ ...shared, ...config.tokens, longestPauseMs, cache, onEvent, onBudget, onRecord });
  const onStatus: RefreshJobsOptions['onStatus'] = (...ids) => jobWatches.see([ids[0], ids[1]], ids[2]);
  const jobs = new RefreshJobs({ ...shared, broker, cache, onStatus });
  const jobWatches = jobWatcher({
    ...config.jobs,
    jobs,
    onWatchers: (count) => metrics.watchers.set({ kind: 'job' }, count),
  });
  const { watchMaxMs } = config.jobs;
  const onWatchers = (count: number) => metrics.watchers.set({ kind: 'record' }, count);
  const recordWatches = recordWatcher({ broker, watchMaxMs, onWatchers });
  const workMs = config.service.deadlineMs + leaseMarginMs;
  const links = new ClientLinks({ ...shared, workMs });
  const forgets = forgetsOf(wiring, sealed, [
    broker,
    jobs,
    { forget: (isMeant) => jobWatches.forget(([taxpayerId]) => isMeant(taxpayerId)) },
    recordWatches,
  ]);
  const stopWatches = () => {
    jobWatches.stop();
    recordWatches.stop();
  };
  const stop = () => {
    forgets.stop();
    stopWatches();
  };
  return { sealed, http, places, calls, broker, jobs, jobWatches, recordWatches, links, forgets, stopWatches, stop };
}

function forgetsOf({ audit }: Wiring, store: SealedStore, keepers: readonly MemoryKeeper[]): Forgets {
  return new Forgets({
    store,
    keepers,
    onForgotten: ({ id: requestId, subject: taxpayer }) =>
      audit?.write({ action: 'taxpayer-forgotten', outcome: 'no longer in memory', requestId, taxpayer }),
  });
}

function resilientFetch({ config, metrics, fetch, ways }: Wiring): ResilientFetch {
  return new ResilientFetch({
    ...config.service,
    ...(fetch && { fetch }),
    agents: ways?.service ?? new Agents(config.proxies),
    onTry: metrics.onTry,
  });
}

const silenceCauses = {
  'rate-limited': 'HTTP 429: the fleet stops calling for as long as the service asks',
  'credentials-rejected': 'HTTP 401: the fleet stops calling for 30 s at a time',
} as const;

type EndpointEpisodes = Readonly<Record<Endpoint, Episode>>;

function endpointEpisodes(log: Logger): EndpointEpisodes {
  const texts = { begins: 'calls to the service are failing', ends: 'calls to the service work again' };
  const of = (endpoint: Endpoint) => new Episode({ log, about: { endpoint }, ...texts });
  return { createClientLink: of('createClientLink'), taxpayerToken: of('taxpayerToken'), refreshJob: of('refreshJob') };
}

function taxpayerService(wiring: Wiring, http: ResilientFetch, sealed: SealedStore, episodes: EndpointEpisodes) {
  const { config, metrics, baseUrl, credentials } = wiring;
  const { apiVersion } = config.service;
  const pauses = new Pauses({
    store: sealed,
    onPause: (endpoint, reason) => {
      metrics.gateClosed.inc({ endpoint, reason });
      episodes[endpoint].see(reason, silenceCauses[reason]);
    },
  });
  return new TaxpayerService({
    ...{ baseUrl, apiVersion, credentials, http, pauses, maxDepth: config.limits.metadataDepth },
    onOutcome: (endpoint, failure) => episodes[endpoint].see(failure?.kind, failure?.reason),
  });
}

function onDecisionCall({ log, metrics }: Surroundings): (call: DecisionCall) => void {
  const texts = { begins: 'the decision point cannot decide', ends: 'the decision point decides again' };
  const episode = new Episode({ log, ...texts });
  return (call) => {
    metrics.onDecisionCall(call);
    episode.see(call.outcome === 'ok' ? undefined : call.outcome, call.cause);
  };
}

/** A document that is not trusted was allowed to run. */
function tellUntrusted(lines: LineLimit, { requestId, ...common }: UntrustedDocument): void {
  const general = { operation: common.operation };
  lines.pass({ level: 'warn', message: 'untrusted document', requestId, common, general });
}
