import type { Holder } from './admission/Places.js';
import { Quota } from './admission/Quota.js';
import { Sealer } from './cache/sealing.js';
import { followSecret, type UpstreamCredentials } from './config/config.js';
import { identifierReader } from './datasources/identifiers.js';
import { startDatasources } from './datasources/startDatasources.js';
import { AuditLog } from './observability/AuditLog.js';
import { LineLimit } from './observability/LineLimit.js';
import { OperationLog } from './observability/OperationLog.js';
import { openWatchedStore } from './observability/watchedStore.js';
import type { UntrustedDocument } from './operations/TrustedDocuments.js';
import type { Surroundings } from './Surroundings.js';

export type RunningServices = Awaited<ReturnType<typeof startServices>>;

/** Estimate of how long one read of the service, with all its steps, keeps the event loop busy, in milliseconds. */
const readWorkMs = 0.5;
/** How often expired entries are removed from memory, in milliseconds. */
const cleanEveryMs = 600_000;

/** Starts everything between the resolvers and the service. @throws Error in plain words when the store cannot be opened */
export async function startServices(surroundings: Surroundings & { readonly upstream: UpstreamCredentials }) {
  const { config, upstream, log, metrics } = surroundings;
  let credentials = upstream;
  const sealer = Sealer.of(config.cache, upstream.clientSecret);
  const store = await openWatchedStore(surroundings);
  const lines = new LineLimit(log, sealer, config.trustedProxies !== undefined);
  const audit = new AuditLog(lines, config.audit);
  const onCall = (holder: Holder) => quota.spend(holder, readWorkMs);
  const { baseUrl } = upstream;
  const whole = { ...surroundings, store, sealer, baseUrl, credentials: () => credentials, audit, onCall };
  const datasources = startDatasources(whole);
  const { broker, jobs, forgets, http } = datasources;
  const quota = new Quota({ store: datasources.sealed, perMinute: config.limits.requestsPerMinute });
  if (store.kind === 'redis') await forgets.start();
  const cleaning = setInterval(() => {
    broker.dropExpired();
    jobs.dropExpired();
  }, cleanEveryMs).unref();
  metrics.showBudget(config.tokens.budgetPerHour);
  metrics.showBreakers((endpoint) => http.isOpen(endpoint));
  const unfollow = followSecret(config, 'UPSTREAM_CLIENT_SECRET', log, (clientSecret) => {
    credentials = { ...upstream, clientSecret };
    if (config.cache.encryptionKeys.length > 0) return;
    sealer.replace({ from: 'client-secret', secret: clientSecret });
    forgets.forgetAll();
  });
  return {
    ...datasources,
    audit,
    operationLog: new OperationLog(lines, config.operationLog),
    /** A document that is not trusted was allowed to run. */
    onUntrusted: ({ requestId, ...common }: UntrustedDocument) => {
      const general = { operation: common.operation };
      lines.pass({ level: 'warn', message: 'untrusted document', requestId, common, general });
    },
    ids: identifierReader(config.limits.idLength),
    maxMetadataDepth: config.limits.metadataDepth,
    maxAnswerBytes: config.limits.answerBytes,
    quota,
    /** Ends watches, connections, timers and the store. */
    stop: async () => {
      unfollow();
      clearInterval(cleaning);
      quota.stop();
      datasources.stop();
      lines.flush();
      await store.close();
    },
  };
}
