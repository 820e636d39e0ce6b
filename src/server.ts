import { setMaxListeners } from 'node:events';
import { startAuthentication } from './auth/startAuthentication.js';
import type { Config } from './config/config.js';
import { RequestContext, type Services } from './context/RequestContext.js';
import { edgeOf } from './http/edge.js';
import { startHttp, startMetricsServer } from './http/startHttp.js';
import { startAgents } from './network/agents.js';
import { createLogger } from './observability/log.js';
import { Metrics } from './observability/Metrics.js';
import type { LogDestination } from './observability/StandardOutput.js';
import type { Tracing } from './observability/Tracing.js';
import { Operations } from './operations/Operations.js';
import { pause } from './process/pause.js';
import { resolvers } from './resolvers/index.js';
import type { Sandbox } from './sandbox/Sandbox.js';
import { buildSchema } from './schema/buildSchema.js';
import { explorerOperations } from './schema/explorerOperations.js';
import { readProviders } from './schema/Provider.js';
import { Vocabulary } from './schema/Vocabulary.js';
import { type Surroundings, startServices } from './services.js';

export type Gateway = Awaited<ReturnType<typeof startGateway>>;

interface Part {
  stop(): unknown;
}

/**
 * Starts a gateway. Follow a request from here: `HttpServer` → `graphqlHandler` or `webSocketHandler` → `Quota` (admit) →
 * `Operations` (prepare, run) → `resolvers/` → `RequestContext.taxpayer()`, the door → `datasources/` → `cache/` and `upstream/` →
 * the service.
 * The parts start in the opposite order, so that each finds what it needs, and stop in the order of a request.
 * Returns the port, the embedded sandbox when it is the service, and `stop`, which answers what is in flight, closes everything,
 * and resolves when nothing of the gateway is left.
 * @throws Error in one plain line, when something configured cannot be used; then nothing stays open
 */
export async function startGateway(config: Config, output: LogDestination) {
  const running: Part[] = [];
  const stop = async () => {
    for (const part of running.splice(0).reverse()) await part.stop();
  };
  try {
    return { ...(await start(config, output, running)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Adds each part that has started to `running`. */
async function start(given: Config, output: LogDestination, running: Part[]) {
  const started = <Some extends Part | undefined>(part: Some): Some => {
    if (part !== undefined) running.push(part);
    return part;
  };
  const log = createLogger(given.LOG_LEVEL, output);
  const metrics = new Metrics();
  metrics.showLogLinesDropped(() => output.linesDropped ?? 0);

  const sandbox = started(given.isSandbox ? await startEmbeddedSandbox() : undefined);
  const config = sandbox ? { ...given, UPSTREAM_BASE_URL: sandbox.url } : given;
  const ending = new AbortController();
  const stopped = ending.signal;
  setMaxListeners(0, stopped);
  const agents = started(startAgents(config, { log, metrics, stopped }));
  // Aborts before the agents stop, so that nothing reports their connections as lost.
  started({ stop: () => ending.abort() });
  const surroundings = { config, log, metrics, agents, stopped };
  const tracing = started(await startTracing(surroundings));
  // Before authentication, which may log: if the store cannot be opened, that error must be the only line.
  const services = started(await startServices(surroundings));
  const { authenticator, decisions, reasonNotReady } = startAuthentication(surroundings);
  const operations = operationsOf({ ...surroundings, ...services, decisions }, tracing);
  await operations.start();
  started(operations); // only now: Apollo Server cannot be stopped before it has started

  // The server of METRICS_PORT ends after that of PORT, so it starts before it. Until both run, the process is not ready.
  let isListening = false;
  const draining = new AbortController();
  const edge = edgeOf({
    ...surroundings,
    ...services,
    operations,
    authenticator,
    explorerOperations: explorerOperations(sandbox?.demo.jobs.processing),
    draining: draining.signal,
    reasonNotReady: () => (isListening ? reasonNotReady() : 'starting'),
  });
  started(await startMetricsServer(edge));
  const server = await startHttp(edge);
  isListening = true;
  started({
    /** Answers what is in flight. */
    stop: async () => {
      const endsAt = performance.now() + config.DRAIN_TIMEOUT_MS;
      draining.abort();
      services.stopWatches();
      await server.stop(config.DRAIN_TIMEOUT_MS);
      // Also wait for calls to the service whose callers have left: their results are worth storing.
      while (services.places.heldByAll('calls') > 0 && performance.now() < endsAt) await pause(10);
    },
  });
  return { port: server.port, sandbox };
}

/** Loads the code of tracing only where it is configured. */
async function startTracing(surroundings: Surroundings): Promise<Tracing | undefined> {
  const { tracesUrl } = surroundings.config;
  if (tracesUrl === undefined) return undefined;
  const { Tracing } = await import('./observability/Tracing.js');
  return new Tracing(surroundings, tracesUrl);
}

/** Loads the code of the sandbox only where it is needed: a production gateway never reads it. */
async function startEmbeddedSandbox(): Promise<Sandbox> {
  const { startSandbox } = await import('./sandbox/Sandbox.js');
  return startSandbox();
}

function operationsOf(parts: Surroundings & Omit<Services, 'vocabulary'>, tracing: Tracing | undefined): Operations {
  const { config, log, metrics, logOperation } = parts;
  const providers = readProviders(config.PROVIDERS_FILE);
  const vocabulary = new Vocabulary(providers, (kind, value) => {
    metrics.unknownValues.add(kind);
    // The service may put anything into these fields: only a plain word is logged.
    const logged = /^[A-Za-z_-]{1,40}$/.test(value) ? value : 'withheld: not a plain word';
    log.warn({ kind, value: logged }, 'the service uses a value the schema has no name for');
  });
  const services = { ...parts, vocabulary };
  const schema = buildSchema(resolvers, providers);
  for (const type of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]) {
    metrics.showFailures(Object.keys(type?.getFields() ?? {}));
  }
  return new Operations({
    ...services,
    schema,
    contextFor: (facts, fields, trail) => new RequestContext(facts, services, fields, trail),
    onEnd: (record) => {
      metrics.onEnd(record);
      logOperation(record, tracing?.onEnd(record));
    },
  });
}
