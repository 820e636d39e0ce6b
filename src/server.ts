import cors from 'cors';
import type { GraphQLSchema } from 'graphql';
import type { Registry } from 'prom-client';
import { RateLimit } from './admission/RateLimit.js';
import { Authenticator } from './auth/Authenticator.js';
import { allScopes } from './auth/caller.js';
import { type DeveloperKeys, developerDirectory, loadDeveloperKeys } from './auth/developerKeys.js';
import { type Identify, identifier } from './auth/identify.js';
import { followRouterSecrets } from './auth/routerSecrets.js';
import type { Config, UpstreamCredentials } from './config/config.js';
import { packageVersion } from './config/packageVersion.js';
import { Secret } from './config/secret.js';
import { RequestContext } from './context.js';
import { GraphQLEndpoint } from './http/GraphQLEndpoint.js';
import { type Handler, HttpServer, type HttpServerOptions } from './http/HttpServer.js';
import { liveness, metricsPage, readiness } from './http/health.js';
import { apolloSandboxPage, graphiqlPage } from './http/pages.js';
import { readTlsFiles, type TlsFiles, type TlsMaterial, watchTlsFiles } from './http/tlsFiles.js';
import { Unread } from './http/unread.js';
import { LiveEdge } from './live/LiveEdge.js';
import { OpenStreams } from './live/OpenStreams.js';
import { createLogger, type Logger } from './observability/log.js';
import { Metrics } from './observability/Metrics.js';
import { type LogDestination, StandardOutput } from './observability/StandardOutput.js';
import type { Tracing } from './observability/tracing/Tracing.js';
import { admission } from './operations/admission.js';
import { createApolloServer } from './operations/apolloServer.js';
import { documentLimits } from './operations/documentLimits.js';
import { DocumentMemory } from './operations/documents/DocumentMemory.js';
import { LiveOperations } from './operations/LiveOperations.js';
import type { ContextFor } from './operations/OperationContext.js';
import { observeAll, observedByApollo } from './operations/observeOperations.js';
import { PlanCache, type PlanMode } from './operations/plans/PlanCache.js';
import { readTrustedDocuments, type TrustedDocuments } from './operations/trustedDocuments.js';
import { serveMetrics } from './process/metricsServer.js';
import { resolvers } from './resolvers/index.js';
import type { Sandbox } from './sandbox/Sandbox.js';
import { buildSchema } from './schema/buildSchema.js';
import { defaultProviders, readProviders } from './schema/Provider.js';
import { type RunningServices, type ServicesOptions, startServices } from './services.js';

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

/** How to close what was opened so far, in the order of the opening. */
type Closings = (() => unknown)[];

/**
 * Starts a gateway. Follow a request from here: `HttpServer` → `GraphQLEndpoint` (who, how large, which form) → a plan or
 * Apollo → `resolvers/` → `RequestContext.taxpayer()`, the door → `datasources/` → the service.
 *
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
  const log = createLogger(config.logLevel, logDestination);
  const metrics = new Metrics();
  metrics.showLogLinesDropped(() => logDestination.linesDropped ?? 0);
  const providers = config.providersFile === undefined ? defaultProviders : readProviders(config.providersFile);
  const tls = config.tls && readTlsFiles(config.tls);
  const trustedDocuments = config.trustedDocumentsFile ? readTrustedDocuments(config.trustedDocumentsFile) : undefined;
  const developerKeys = config.auth.mode === 'developer' ? await loadDeveloperKeys(developerDirectory) : undefined;
  const firstQuery = await firstQueryFor(config);

  const tracing = await startTracing(config, metrics);
  closings.push(() => tracing?.stop());
  const needsSandbox = config.upstream === 'embedded-sandbox' && options.upstream === undefined;
  const sandbox = needsSandbox ? await startEmbeddedSandbox() : undefined;
  closings.push(() => sandbox?.stop());
  const upstream = options.upstream ?? (sandbox ? credentialsOf(sandbox) : (config.upstream as UpstreamCredentials));
  const services = await startServices({ config, upstream, providers, log, metrics, tracing });
  closings.push(() => services.stop());
  const authenticator = startAuthenticator(config, developerKeys, log, metrics);
  closings.push(() => authenticator.stop());
  const routerSecrets = followRouterSecrets(config.federation, log);
  closings.push(() => routerSecrets.stop());

  const schema = buildSchema({ resolvers, providers });
  const identify = identifier(authenticator, routerSecrets.secrets);
  const given = { config, log, metrics, tracing, services, trustedDocuments, schema, identify };
  const parts = partsOf({ ...given, stallMs: options.stallMs });
  closings.push(() => parts.rateLimit.stop());
  const apollo = apolloServer(parts);
  await apollo.start();
  closings.push(() => apollo.stop());
  const endpoint = graphqlEndpoint(parts, apollo, options.plans);
  const streams = new OpenStreams({ onCount: (transport, count) => metrics.connections.set({ transport }, count) });
  const live = liveEdge(parts, streams);

  const metricsText = options.joinMachine?.(metrics.registry).text ?? (() => metrics.registry.metrics());
  const metricsServer = options.joinMachine ? undefined : await serveMetrics(config, metricsText);
  closings.push(() => metricsServer?.drain(0));
  const graphql = live.graphql((request, response) => endpoint.handle(request, response));
  const routes = new Map<string, Handler>([
    ['/graphql', tracing?.traced('/graphql', graphql) ?? graphql],
    ['/graphql/stream', (request, response) => live.stream(request, response)],
    ['/health/live', liveness],
    ['/health/ready', readiness(() => (http.draining ? 'shutting down' : authenticator.reasonNotReady()))],
  ]);
  if (config.metricsPort === undefined) routes.set('/metrics', metricsPage(metricsText));
  if (config.introspection) {
    const explorer = { firstQuery, headers: () => developerHeaders(developerKeys) };
    routes.set('/', apolloSandboxPage(explorer)).set('/graphiql', graphiqlPage(explorer));
  }
  const { host, port } = config;
  const http = new HttpServer({ host, port, tls, routes, allClosed: options.allClosed, before: crossOrigin(config) });
  live.attach(http);
  const listeningOn = await http.listen();
  closings.push(async () => {
    // Streams first: once the watcher stops, what it fed would look complete.
    const drained = streams.drain(config.drainTimeoutMs);
    services.watcher.stop();
    await http.drain(config.drainTimeoutMs);
    await drained;
  });
  if (config.tls && tls) closings.push(followTlsFiles(config.tls, tls, http, log));
  return { port: listeningOn, sandbox, firstQuery, log };
}

/** Loaded only where it is configured. */
async function startTracing({ otlpEndpoint: endpoint }: Config, metrics: Metrics): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined;
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

function startAuthenticator({ auth }: Config, keys: DeveloperKeys | undefined, log: Logger, metrics: Metrics) {
  const { mode, ...jwt } = auth;
  const authenticator = new Authenticator({
    ...(keys ? { mode: 'developer', developerKeys: keys } : mode === 'disabled' ? { mode } : { mode: 'jwt', ...jwt }),
    onKeySetRefresh: (issuer, outcome) => {
      if (outcome.result === 'failed') log.warn({ issuer, reason: outcome.reason }, 'a key set could not be read');
    },
  });
  metrics.showKeySets(() => [...authenticator.keySets.values()].map((keySet) => keySet.keysAgeMs));
  authenticator.start();
  if (mode === 'disabled') log.warn('AUTH_MODE=disabled: everybody who can connect may see every taxpayer');
  return authenticator;
}

interface Given extends Pick<ServicesOptions, 'config' | 'log' | 'metrics' | 'tracing'> {
  readonly services: RunningServices;
  readonly trustedDocuments: TrustedDocuments | undefined;
  readonly schema: GraphQLSchema;
  readonly identify: Identify;
  readonly stallMs: number | undefined;
}

/** What operations have in common, however they arrive. */
function partsOf(given: Given) {
  const { log, metrics, tracing, services, stallMs } = given;
  const { limits, introspection } = given.config;
  const { ledger, sealed: store, workTime } = services;
  return {
    ...given,
    ledger,
    memory: new DocumentMemory(),
    rateLimit: new RateLimit({ store, perMinute: limits.requestsPerMinute, workTime }),
    unread: new Unread({ ledger, stallMs }),
    contextFor: ((facts) => new RequestContext(facts, services)) as ContextFor,
    observe: observeAll([metrics.observeOperation, ...(tracing ? [tracing.observeOperation] : [])]),
    onBug: (error: unknown, requestId?: string) => log.error({ requestId, err: error }, 'a bug of the gateway'),
    requestLimits: { maxBytes: limits.bodyBytes, maxMetadataDepth: limits.metadataDepth },
    /** How documents are read and checked. */
    reading: {
      introspection,
      maxTokens: limits.tokens,
      validationRules: documentLimits(limits),
      maxRepresentations: limits.representations,
    },
  };
}

type Parts = ReturnType<typeof partsOf>;

function apolloServer({ reading, schema, memory, observe, log, onBug, rateLimit }: Parts) {
  return createApolloServer({
    ...reading,
    schema,
    documents: memory.documents,
    observers: [observedByApollo(observe)],
    log,
    onBug,
    onWork: ({ holder }, beganAt) => rateLimit.noteWork(holder, beganAt),
  });
}

function graphqlEndpoint(parts: Parts, apollo: ReturnType<typeof apolloServer>, mode: PlanMode | undefined) {
  const { schema, memory, onBug, config } = parts;
  const plans = new PlanCache(schema, { memory: memory.plans, mode, onBug });
  return new GraphQLEndpoint({ ...parts, apollo, plans, suggestions: config.introspection });
}

function liveEdge(parts: Parts, streams: OpenStreams): LiveEdge {
  const { config, memory, rateLimit } = parts;
  const operations = new LiveOperations({
    ...parts,
    ...parts.reading,
    documents: memory.documents,
    maxAnswerBytes: config.limits.answerBytes,
    admit: admission(parts),
    onWork: (holder, beganAt) => rateLimit.noteWork(holder, beganAt),
  });
  return new LiveEdge({
    ...parts,
    operations,
    streams,
    allowedOrigins: config.corsOrigins,
    callbackOrigins: config.federation.callbackOrigins,
    maxOperations: config.limits.subscriptions,
  });
}

/** Answers preflights, and marks the answers that browsers of an allowed origin may read. */
function crossOrigin({ corsOrigins }: Config): HttpServerOptions['before'] {
  const allowOrigin = cors({ origin: [...corsOrigins], methods: ['GET', 'POST'], maxAge: 600 });
  return (request, response) => {
    if (request.headers.origin === undefined) return false; // no browser of another origin is asking
    let answered = true;
    allowOrigin(request, response, () => {
      answered = false;
    });
    return answered;
  };
}

/** Returns how to stop. */
function followTlsFiles(files: TlsFiles, inUse: TlsMaterial, http: HttpServer, log: Logger): () => void {
  const onChange = (material: TlsMaterial) => {
    http.renewTls(material);
    log.info('the TLS certificate was renewed');
  };
  return watchTlsFiles(files, inUse, onChange, (problem) =>
    log.warn({ problem }, 'the new TLS files cannot be used: the certificate in use stays'),
  );
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
