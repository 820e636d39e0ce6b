import cors from 'cors';
import type { Registry } from 'prom-client';
import { RateLimit } from './admission/RateLimit.js';
import { Authenticator, type AuthenticatorOptions } from './auth/Authenticator.js';
import { allScopes } from './auth/caller.js';
import { type DeveloperKeys, developerDirectory, loadDeveloperKeys } from './auth/developerKeys.js';
import { identifier } from './auth/identify.js';
import { followRouterSecrets } from './auth/routerSecrets.js';
import type { Config, UpstreamCredentials } from './config/config.js';
import { packageVersion } from './config/packageVersion.js';
import { Secret } from './config/secret.js';
import { RequestContext } from './context.js';
import { GraphQLEndpoint } from './http/GraphQLEndpoint.js';
import { type Handler, HttpServer } from './http/HttpServer.js';
import { liveness, metricsPage, readiness } from './http/health.js';
import { formOf } from './http/mediaTypes.js';
import { apolloSandboxPage, graphiqlPage } from './http/pages.js';
import { readTlsFiles, watchTlsFiles } from './http/tlsFiles.js';
import { Unread } from './http/unread.js';
import { LiveEdge } from './live/LiveEdge.js';
import { OpenStreams } from './live/OpenStreams.js';
import { createLogger, type Logger } from './observability/log.js';
import { Metrics } from './observability/Metrics.js';
import { type LogDestination, StandardOutput } from './observability/StandardOutput.js';
import type { Tracing } from './observability/tracing/Tracing.js';
import type { ContextFor } from './operations/OperationContext.js';
import { observeAll } from './operations/observeOperations.js';
import { Pipeline } from './operations/Pipeline.js';
import type { PlanMode } from './operations/plans/PlanCache.js';
import { readTrustedDocuments } from './operations/trustedDocuments.js';
import { serveMetrics } from './process/metricsServer.js';
import { resolvers } from './resolvers/index.js';
import type { Sandbox } from './sandbox/Sandbox.js';
import { buildSchema } from './schema/buildSchema.js';
import { defaultProviders, readProviders } from './schema/Provider.js';
import { startServices } from './services.js';

export interface GatewayOptions {
  /** The service to use in place of the configured one: where another process runs the embedded sandbox. */
  readonly upstream?: UpstreamCredentials;
  /** In a worker: joins the numbers of this process to those of the machine, and gives all of them as text. */
  readonly joinMachine?: (registry: Registry) => { readonly text: () => Promise<string> };
  /** In a worker that stopped accepting connections: resolves when all of them have. */
  readonly allClosed?: () => Promise<void>;
  /** Where log lines go; by default standard output. */
  readonly logDestination?: LogDestination;
  /** Whether operations get plans; for tests, which run with and without. */
  readonly plans?: PlanMode;
  /** How long a client may take nothing of what waits for it, in milliseconds; by default 30 s. */
  readonly stallMs?: number;
}

/** A gateway that serves. */
export interface Gateway {
  readonly port: number;
  /** The embedded sandbox, when this process runs it. */
  readonly sandbox: Sandbox | undefined;
  readonly firstQuery: string;
  readonly log: Logger;
  /** Answers what is in flight, closes everything, and resolves when nothing of the gateway is left. */
  stop(): Promise<void>;
}

/**
 * Starts a gateway. Follow a request from here: `HttpServer` → `GraphQLEndpoint` (who, how large, which form) → a plan or
 * Apollo → `resolvers/` → `RequestContext.taxpayer()`, the door → `datasources/` → the service.
 *
 * @throws Error in one plain line, when something configured cannot be used
 */
export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const { logDestination = new StandardOutput() } = options;
  const log = createLogger(config.logLevel, logDestination);
  const metrics = new Metrics();
  metrics.showLogLinesDropped(() => logDestination.linesDropped ?? 0);
  const tracing = config.otlpEndpoint === undefined ? undefined : await startTracing(config.otlpEndpoint, metrics);
  const providers = config.providersFile === undefined ? defaultProviders : readProviders(config.providersFile);
  const tls = config.tls && readTlsFiles(config.tls);
  const trustedDocuments = config.trustedDocumentsFile ? readTrustedDocuments(config.trustedDocumentsFile) : undefined;
  const sandbox =
    config.upstream === 'embedded-sandbox' && !options.upstream ? await startEmbeddedSandbox() : undefined;
  const upstream = options.upstream ?? (sandbox ? credentialsOf(sandbox) : (config.upstream as UpstreamCredentials));
  const services = await startServices({ config, upstream, providers, log, metrics, tracing });
  const onBug = (error: unknown, requestId?: string) => log.error({ requestId, err: error }, 'a bug of the gateway');

  const developerKeys = config.auth.mode === 'developer' ? await loadDeveloperKeys(developerDirectory) : undefined;
  const authenticator = new Authenticator({
    ...authenticatorMode(config, developerKeys),
    onKeySetRefresh: (issuer, outcome) => {
      if (outcome.result === 'failed') log.warn({ issuer, reason: outcome.reason }, 'a key set could not be read');
    },
  });
  metrics.showKeySets(() => [...authenticator.keySets.values()].map((keySet) => keySet.keysAgeMs));
  authenticator.start();
  if (config.auth.mode === 'disabled') log.warn('AUTH_MODE=disabled: everybody who can connect may see every taxpayer');

  const schema = buildSchema({ resolvers, providers });
  const observe = observeAll([metrics.observeOperation, ...(tracing ? [tracing.observeOperation] : [])]);
  const rateLimit = new RateLimit({
    store: services.sealed,
    perMinute: config.limits.requestsPerMinute,
    workTime: services.workTime,
  });
  const contextFor: ContextFor = (facts) => new RequestContext(facts, services);
  const { ledger } = services;
  const { onRequest, onExecution, onError } = metrics;
  const pipeline = new Pipeline({
    schema,
    contextFor,
    rateLimit,
    ledger,
    limits: config.limits,
    introspection: config.introspection,
    trustedDocuments,
    planMode: options.plans,
    hooks: { observe, onRequest, onExecution, onError, onBug },
    log,
  });
  await pipeline.start();
  const routerSecrets = followRouterSecrets(config.federation, log);
  const identify = identifier(authenticator, routerSecrets.secrets);
  const unread = new Unread(ledger, options.stallMs);
  const endpoint = new GraphQLEndpoint({ pipeline, identify, ledger, unread });
  const streams = new OpenStreams((transport, change) => metrics.connections.inc({ transport }, change));
  const live = new LiveEdge({
    pipeline,
    identify,
    streams,
    ledger,
    unread,
    allowedOrigins: config.corsOrigins,
    callbackOrigins: config.federation.callbackOrigins,
    maxOperations: config.limits.subscriptions,
  });

  const firstQuery = await firstQueryFor(config);
  const forms = { ...live, answer: endpoint.handle.bind(endpoint) };
  const graphql: Handler = (request, response) => forms[formOf(request)](request, response);
  const routes = new Map<string, Handler>([
    ['/graphql', tracing?.traced('/graphql', graphql) ?? graphql],
    ['/graphql/stream', live.stream],
    ['/health/live', liveness],
    ['/health/ready', readiness(() => (http.draining ? 'shutting down' : authenticator.reasonNotReady()))],
  ]);
  const metricsText = options.joinMachine?.(metrics.registry).text ?? (() => metrics.registry.metrics());
  if (config.metricsPort === undefined) routes.set('/metrics', metricsPage(metricsText));
  const metricsServer = options.joinMachine ? undefined : await serveMetrics(config, metricsText);
  if (config.introspection) {
    const headers = async () => developerHeaders(developerKeys);
    routes.set('/', apolloSandboxPage({ firstQuery, headers }));
    routes.set('/graphiql', graphiqlPage({ firstQuery, headers }));
  }
  const allowOrigin = cors({ origin: [...config.corsOrigins], methods: ['GET', 'POST'], maxAge: 600 });
  const http = new HttpServer({
    host: config.host,
    port: config.port,
    tls,
    routes,
    allClosed: options.allClosed,
    before: (request, response) => {
      if (request.headers.origin === undefined) return false; // no browser of another origin is asking
      let answered = true;
      allowOrigin(request, response, () => {
        answered = false;
      });
      return answered;
    },
  });
  http.onUpgrade((...upgrade) => live.upgrade(...upgrade));
  const port = await http.listen();
  const unwatchTls =
    config.tls && tls
      ? watchTlsFiles(
          config.tls,
          tls,
          (material) => {
            http.renewTls(material);
            log.info('the TLS certificate was renewed');
          },
          (problem) => log.warn({ problem }, 'the new TLS files cannot be used: the certificate in use stays'),
        )
      : () => {};
  return {
    port,
    sandbox,
    firstQuery,
    log,
    stop: async () => {
      unwatchTls();
      routerSecrets.stop();
      // Streams first: once the watcher stops, what it fed would look complete.
      const drained = streams.drain(config.drainTimeoutMs);
      services.watcher.stop();
      await http.drain(config.drainTimeoutMs);
      await drained;
      authenticator.stop();
      rateLimit.stop();
      await pipeline.stop();
      await services.stop();
      await tracing?.stop();
      await metricsServer?.drain(0);
      await sandbox?.stop();
    },
  };
}

/** Loaded only where it is configured. */
async function startTracing(endpoint: string, metrics: Metrics): Promise<Tracing> {
  const { Tracing } = await import('./observability/tracing/Tracing.js');
  return new Tracing({ endpoint, version: packageVersion(), onDropped: (count) => metrics.spansDropped.inc(count) });
}

/** Loaded only where it is needed: a production gateway never reads its code. */
export async function startEmbeddedSandbox(): Promise<Sandbox> {
  const { startSandbox } = await import('./sandbox/Sandbox.js');
  return startSandbox({ clientId: 'sandbox-client', clientSecret: 'sandbox-secret-not-real' });
}

/** What the gateway presents to its embedded sandbox. */
export function credentialsOf({ url, clientId, clientSecret }: Sandbox): UpstreamCredentials {
  return { baseUrl: url, clientId, clientSecret: new Secret(clientSecret), clientSecretFile: undefined };
}

function authenticatorMode({ auth }: Config, developerKeys: DeveloperKeys | undefined): AuthenticatorOptions {
  if (auth.mode === 'disabled') return { mode: 'disabled' };
  if (developerKeys !== undefined) return { mode: 'developer', developerKeys };
  return { mode: 'jwt', issuers: auth.issuers, audience: auth.audience, taxpayersClaim: auth.taxpayersClaim };
}

/** A token for the explorer's first tab, in developer mode only: there every caller is the local developer anyway. */
async function developerHeaders(keys: DeveloperKeys | undefined): Promise<Record<string, string>> {
  if (keys === undefined) return {};
  const token = await keys.sign({ subject: 'local-developer', scopes: allScopes, taxpayers: [], ttlSeconds: 86_400 });
  return { Authorization: `Bearer ${token}` };
}

async function firstQueryFor(config: Config): Promise<string> {
  if (config.upstream !== 'embedded-sandbox') return '{ __typename }';
  const { demoData } = await import('./sandbox/demoData.js');
  const { taxpayerId, jobId } = demoData.jobs.processing;
  return `{
  taxpayerToken(taxpayerId: "${taxpayerId}") { status provider name fetchedAt }
  refreshJob(taxpayerId: "${taxpayerId}", jobId: "${jobId}") { name status observedAt }
}`;
}
