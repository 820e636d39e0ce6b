import 'reflect-metadata';
import { Authenticator } from '../../src/auth/Authenticator.js';
import { identifier } from '../../src/auth/identify.js';
import { loadConfig } from '../../src/config/config.js';
import { Secret } from '../../src/config/secret.js';
import { RequestContext } from '../../src/context/RequestContext.js';
import { edgeOf } from '../../src/http/edge.js';
import { GraphQLHandler } from '../../src/http/GraphQLHandler.js';
import { type Handler, HttpServer } from '../../src/http/HttpServer.js';
import { WebSockets } from '../../src/live/WebSockets.js';
import { startAgents } from '../../src/network/agents.js';
import { createLogger } from '../../src/observability/log.js';
import { Metrics } from '../../src/observability/Metrics.js';
import { Operations } from '../../src/operations/Operations.js';
import { resolvers } from '../../src/resolvers/index.js';
import { buildSchema } from '../../src/schema/buildSchema.js';
import { defaultProviders } from '../../src/schema/Provider.js';
import { startServices } from '../../src/services.js';

export interface GatewayOfResolvers {
  readonly origin: string;
  readonly logs: readonly string[];
  stop(): Promise<void>;
}

/** A gateway in this process with `more` resolvers beside the product's. There is no service behind it. */
export async function startGatewayOf(
  more: readonly NonNullable<(typeof resolvers)[number]>[] | readonly (new () => object)[],
): Promise<GatewayOfResolvers> {
  const logs: string[] = [];
  const config = loadConfig({ CACHE_URL: 'memory:' });
  const log = createLogger('info', { write: (line) => logs.push(line) });
  const metrics = new Metrics();
  const services = await startServices({
    config,
    upstream: { baseUrl: 'http://127.0.0.1:9', clientId: 'a', clientSecret: new Secret('b') },
    log,
    metrics,
    ways: startAgents(config),
  });
  const { places, quota } = services;
  const onBug = (error: unknown, requestId?: string) => log.error({ requestId, err: error }, 'a bug of the gateway');
  const engine = new Operations({
    schema: buildSchema({ resolvers: [...resolvers, ...more], providers: defaultProviders }),
    contextFor: (facts) => new RequestContext(facts, services),
    quota,
    places,
    limits: config.limits,
    introspection: true,
    trustedDocuments: undefined,
    plans: 'off',
    hooks: { onBug, onEnd: (record) => services.operationLog.end(record) },
    log,
  });
  await engine.start();
  const identify = identifier(new Authenticator(config.auth), () => undefined);
  const options = edgeOf({ config, log, metrics }, { operations: engine, identify, places });
  const sockets = new WebSockets(options);
  const handler = new GraphQLHandler(options);
  const http = new HttpServer({
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    routes: new Map<string, Handler>([
      ['/graphql', (request, response) => handler.handle(request, response)],
      ['/graphql/stream', (request, response) => handler.handle(request, response, true)],
    ]),
    before: () => false,
    log,
  });
  http.server.on('upgrade', sockets.upgrade.bind(sockets));
  const origin = `http://127.0.0.1:${await http.listen()}`;
  const stop = async () => {
    await http.drain(0);
    await engine.stop();
    await services.stop();
  };
  return { origin, logs, stop };
}
