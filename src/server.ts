import type { IncomingMessage } from 'node:http';
import { Authenticator } from './auth/Authenticator.js';
import { allScopes } from './auth/caller.js';
import { developerToken } from './auth/developerToken.js';
import { identifier, RouterSecrets } from './auth/identify.js';
import {
  type Config,
  embeddedSandbox,
  followSecret,
  packageVersion,
  type UpstreamCredentials,
} from './config/config.js';
import { RequestContext } from './context.js';
import { readAccept } from './http/accept.js';
import { beforeRoutes } from './http/beforeRoutes.js';
import { requestIdOf } from './http/facts.js';
import { GraphQLHandler } from './http/GraphQLHandler.js';
import { type Handler, HttpServer } from './http/HttpServer.js';
import { liveness, metricsPage, readiness } from './http/health.js';
import { OpenStreams } from './http/OpenStreams.js';
import { apolloSandboxPage, graphiqlPage } from './http/pages.js';
import { Unread } from './http/Unread.js';
import { WebSockets } from './live/WebSockets.js';
import { Agents } from './network/agents.js';
import { peerMeeter, refusedCertificates } from './network/peer.js';
import { followPemFiles, readPemFiles } from './network/pemFiles.js';
import { Episodes } from './observability/Episodes.js';
import { createLogger, type Logger } from './observability/log.js';
import { Metrics } from './observability/Metrics.js';
import { whenOperationsEnd } from './observability/operatorLogs.js';
import { type LogDestination, StandardOutput } from './observability/StandardOutput.js';
import type { Tracing } from './observability/Tracing.js';
import { clientOf } from './operations/clientName.js';
import type { OperationHooks } from './operations/OperationRecord.js';
import { Operations } from './operations/Operations.js';
import { TrustedDocuments } from './operations/TrustedDocuments.js';
import { serveMetrics } from './process/metricsServer.js';
import { pause } from './process/pause.js';
import { resolvers } from './resolvers/index.js';
import type { Sandbox } from './sandbox/Sandbox.js';
import { buildSchema } from './schema/buildSchema.js';
import { defaultProviders, readProviders } from './schema/Provider.js';
import { type RunningServices, type Surroundings, startServices } from './services.js';

export interface GatewayOptions {
  /** Where log lines go; by default standard output. */
  readonly logDestination?: LogDestination;
  /** Whether operations get plans; for tests, which run with and without. */
  readonly plans?: 'on' | 'off';
  /** How long a client may read nothing while data waits for it, in milliseconds. Default 30000. */
  readonly stallMs?: number;
  /** Heartbeat interval of an open stream, in milliseconds; for tests. Default 12000. */
  readonly keepAliveMs?: number;
}

/** A gateway that serves. */
export interface Gateway {
  readonly port: number;
  /** The query to begin with, shown on the first screen and in the explorers. */
  readonly firstQuery: string;
  /** The embedded sandbox, when it is the service. */
  readonly sandbox: Sandbox | undefined;
  readonly log: Logger;
  /** Answers what is in flight, closes everything, and resolves when nothing of the gateway is left. */
  stop(): Promise<void>;
}

/** Closes what was opened so far; in the order of opening, and run in reverse. */
type Closings = (() => unknown)[];

/**
 * Starts a gateway. Follow a request from here: `HttpServer` → `GraphQLHandler` or `WebSockets` → `Operations` (admit, prepare,
 * run) → `resolvers/` → `RequestContext.taxpayer()`, the door → `datasources/` → `cache/` and `upstream/` → the service.
 * @throws Error in one plain line, when something configured cannot be used; then nothing stays open
 */
export async function startGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const closings: Closings = [];
  const stop = async () => {
    for (const close of closings.splice(0).reverse()) await close();
  };
  try {
    return { ...(await open(config, options, closings)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function open(config: Config, options: GatewayOptions, closings: Closings): Promise<Omit<Gateway, 'stop'>> {
  const { logDestination = new StandardOutput() } = options;
  let tracing: Tracing | undefined;
  const isTraced = config.traces !== undefined;
  const log = createLogger(config.logLevel, logDestination, isTraced ? () => tracing?.traceId : undefined);
  const metrics = new Metrics();
  metrics.showLogLinesDropped(() => logDestination.linesDropped ?? 0);
  const tls = config.tls && readPemFiles(config.tls);
  const firstQuery = await firstQueryFor(config);

  const sandbox = config.upstream === 'embedded-sandbox' ? await startEmbeddedSandbox() : undefined;
  closings.push(() => sandbox?.stop());
  const upstream = sandbox ? { baseUrl: sandbox.url, ...embeddedSandbox } : (config.upstream as UpstreamCredentials);
  const ways = { service: new Agents(config.proxies, config.service.tls, log), others: new Agents(config.proxies) };
  for (const way of Object.values(ways)) closings.push(() => way.stop());
  tracing = await startTracing({ config, log, metrics, ways }, upstream.baseUrl);
  closings.push(() => tracing?.stop());
  const surroundings = { config, log, metrics, tracing, ways };
  const services = await startServices({ ...surroundings, upstream, logDestination });
  closings.push(() => services.stop());
  const authenticator = startAuthenticator(surroundings);
  closings.push(() => authenticator.stop());
  const routerSecrets = new RouterSecrets(config.routerSecrets);
  closings.push(followSecret(config, 'FEDERATION_SHARED_SECRET', log, (secrets) => routerSecrets.use(secrets)));

  const { places } = services;
  const operations = operationsOf(surroundings, services, options.plans);
  await operations.start();
  closings.push(() => operations.stop());
  const identify = identifier(authenticator, routerSecrets);
  const given = { operations, identify, places, unread: new Unread(places, options.stallMs), tracing };
  const streams = new OpenStreams((transport, change) => metrics.openStreams.inc({ transport }, change));
  const { keepAliveMs } = options;
  const all = { ...given, streams, allowedOrigins: config.corsOrigins, keepAliveMs };
  const sockets = new WebSockets({ ...all, maxOperations: config.limits.subscriptions });

  const health = new Map<string, Handler>([
    ['/health/live', liveness],
    ['/health/ready', readiness(() => (http.draining ? 'shutting down' : authenticator.reasonNotReady()))],
  ]);
  const metricsRoutes = new Map([...health, ['/metrics', metricsPage(metrics.registry)]]);
  const metricsServer = await serveMetrics(config, metricsRoutes, log);
  closings.push(() => metricsServer?.drain(0));
  const handler = new GraphQLHandler(all);
  const graphql: Handler = (request, response) => handler.handle(request, response);
  const stream: Handler = (request, response) => handler.handle(request, response, true);
  const takesJson = ({ headers }: IncomingMessage) => readAccept(headers.accept).json !== undefined;
  const routes = new Map<string, Handler>([
    ['/graphql', tracing?.traced('/graphql', graphql, takesJson) ?? graphql],
    ['/graphql/stream', tracing?.traced('/graphql/stream', stream) ?? stream],
    ...(config.metricsPort === undefined ? metricsRoutes : health),
  ]);
  if (config.introspection) {
    const explorer = { firstQuery, headers: () => developerHeaders(config.auth.mode) };
    routes.set('/', apolloSandboxPage(explorer)).set('/graphiql', graphiqlPage(explorer));
  }
  const { host, port } = config;
  const onNotFound: Handler = (request, response) => {
    const facts = { requestId: requestIdOf(request), startedAt: performance.now(), client: clientOf(request.headers) };
    response.setHeader('x-request-id', facts.requestId);
    operations.turnAway(undefined, 'no such path', facts, 'http');
  };
  const meetPeer = peerMeeter(config.trustedProxies);
  const before = beforeRoutes(config, meetPeer);
  const http = new HttpServer({ host, port, tls, routes, onNotFound, before, log });
  // A refused upgrade is answered like a request that does not offer an upgrade.
  http.onUpgrade((request, ...rest) => {
    meetPeer(request);
    return sockets.upgrade(request, ...rest);
  });
  if (tls?.ca) http.server.on('tlsClientError', refusedCertificates(log));
  const listeningOn = await http.listen();
  closings.push(async () => {
    const over = pause(config.drainTimeoutMs, { ref: false });
    // Streams first: once the watchers stop, the streams that they feed would seem to end normally.
    const drained = streams.drain(config.drainTimeoutMs);
    services.stopWatches();
    await http.drain(config.drainTimeoutMs);
    await drained;
    // Also wait for calls to the service whose callers have left: their results are worth storing.
    await Promise.race([services.calls.whenIdle(), over]);
  });
  if (config.tls && tls) closings.push(followPemFiles(config.tls, tls, log, (renewed) => http.renewTls(renewed)));
  return { port: listeningOn, sandbox, firstQuery, log };
}

/** Loaded only where it is configured. */
async function startTracing({ config: { traces }, log, ways }: Surroundings, serviceUrl: string) {
  if (traces === undefined) return undefined;
  const { openExporter, Tracing } = await import('./observability/Tracing.js');
  const texts = { begins: 'the trace collector does not take spans', ends: 'the trace collector takes spans again' };
  const episodes = new Episodes({ log, about: {}, ...texts });
  const onDropped = (_: number, cause: string) => episodes.failed('dropped', cause);
  const version = packageVersion();
  const exporter = await openExporter(traces, ways?.others.agentFor(new URL(traces.url)));
  return new Tracing({ exporter, serviceUrl, version, onDropped, onSent: () => episodes.worked() });
}

/** Loaded only where it is needed: a production gateway never reads its code. It keeps no request, which could hold a tax id. */
async function startEmbeddedSandbox(): Promise<Sandbox> {
  const { startSandbox } = await import('./sandbox/Sandbox.js');
  const { clientId, clientSecret } = embeddedSandbox;
  return startSandbox({ clientId, clientSecret: clientSecret.reveal() });
}

function startAuthenticator({ config: { auth }, log, metrics, ways }: Surroundings): Authenticator {
  const texts = { begins: 'a key set cannot be read', ends: 'the key set can be read again', quietMs: 0 };
  const episodes = new Map(
    auth.issuers.map(({ issuer }) => [issuer, new Episodes({ log, about: { issuer }, ...texts })]),
  );
  const authenticator = new Authenticator({
    ...auth,
    decisionClaims: auth.decision?.claims,
    agentFor: ways?.others.agentFor,
    onKeysRead: (issuer, failure) => {
      if (failure === undefined) episodes.get(issuer)?.worked();
      else episodes.get(issuer)?.failed(failure.fault, failure.message);
    },
  });
  metrics.showKeySets(() => authenticator.keySets.map(({ ageMs }) => ageMs));
  authenticator.start();
  if (auth.mode === 'disabled') log.warn('AUTH_MODE=disabled: everybody who can connect may see every taxpayer');
  return authenticator;
}

function operationsOf(
  { config, log, metrics, tracing }: Surroundings,
  services: RunningServices,
  plans: GatewayOptions['plans'],
): Operations {
  const schema = buildSchema({
    resolvers,
    providers: config.providersFile === undefined ? defaultProviders : readProviders(config.providersFile),
    onUnknownValue: (kind, value) => {
      metrics.unknownValues.inc({ kind });
      // The service may put anything into these fields: only a plain word is logged.
      const told = /^[A-Za-z_-]{1,40}$/.test(value) ? value : 'withheld: not a plain word';
      log.warn({ kind, value: told }, 'the service uses a value the schema has no name for');
    },
  });
  const { onUntrusted } = services;
  const logEnd = whenOperationsEnd(services);
  const hooks: OperationHooks = {
    onBegin: tracing?.onBegin,
    onEnd: (record) => {
      metrics.onEnd(record);
      logEnd(record);
      tracing?.onEnd(record); // last: the lines name the trace
    },
    onBug: (err, requestId) => log.error({ requestId, err }, 'a bug of the gateway'),
  };
  return new Operations({
    schema,
    contextFor: (facts, _label, trail) => new RequestContext(facts, services, trail),
    quota: services.quota,
    places: services.places,
    limits: config.limits,
    introspection: config.introspection,
    trustedDocuments: config.trustedDocuments && new TrustedDocuments({ ...config.trustedDocuments, log, onUntrusted }),
    plans,
    hooks,
    log,
  });
}

/** A token for the explorer's first tab, in developer mode only: there every caller is the local developer anyway. */
async function developerHeaders(mode: Config['auth']['mode']): Promise<Record<string, string>> {
  if (mode !== 'developer') return {};
  const token = await developerToken('local-developer', allScopes, [], 86_400);
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
