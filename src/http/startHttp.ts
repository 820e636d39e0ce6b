import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Registry } from 'prom-client';
import type { Config } from '../config/config.js';
import { refusedCertificates } from '../network/peer.js';
import { followPemFiles, readPemFiles } from '../network/pemFiles.js';
import type { Logger } from '../observability/log.js';
import { listenProblem } from '../process/listenProblem.js';
import { HttpFacts } from './facts.js';
import { GraphQLHandler, type GraphQLHandlerOptions } from './GraphQLHandler.js';
import { type Handler, HttpServer, type HttpServerOptions, type Routes } from './HttpServer.js';
import { liveness, metricsPage, readiness } from './health.js';
import { type ExplorerOptions, explorerRoutes, orExplorer } from './pages.js';

export interface HttpParts extends GraphQLHandlerOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly registry: Registry;
  readonly explorer: ExplorerOptions;
  readonly reasonNotReady: () => string | undefined;
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

/** Starts the server of METRICS_PORT, without TLS: probes and Prometheus have no certificate. @throws Error in one plain line */
export async function startMetricsServer(parts: HttpParts): Promise<HttpServer | undefined> {
  const { config, log } = parts;
  if (config.metricsPort === undefined) return undefined;
  const routes = new Map([...healthRoutes(parts), ...metricsRoutes(parts)]);
  const { host, metricsPort: port } = config;
  const server = new HttpServer({ host, port, tls: undefined, routes, before: () => false, log });
  await listen(server, 'METRICS_PORT');
  return server;
}

/** Starts the server of PORT. @throws Error in one plain line */
export async function startHttp(parts: HttpParts): Promise<{ readonly server: HttpServer; readonly port: number }> {
  const { config, log, operations, addressOf, origins, upgrade } = parts;
  const routes: Routes = [...graphqlRoutes(parts), ...healthRoutes(parts)];
  if (config.metricsPort === undefined) routes.push(...metricsRoutes(parts));
  if (config.introspection) routes.push(...explorerRoutes(parts.explorer));
  const onNotFound: Handler = (request, response) => {
    const facts = new HttpFacts(response, addressOf(request));
    response.setHeader('x-request-id', facts.requestId);
    operations.turnAway(undefined, 'no such path', facts, 'http', 404);
  };
  const { host, port } = config;
  const tls = config.tls && readPemFiles(config.tls);
  const before: HttpServerOptions['before'] = (request, response) => origins.answer(request, response);
  const server = new HttpServer({ host, port, tls, routes: new Map(routes), onNotFound, before, log });
  server.server.on('upgrade', upgrade);
  if (tls?.ca) server.server.on('tlsClientError', refusedCertificates(log));
  const listeningOn = await listen(server, 'PORT');
  if (config.tls && tls) {
    const unfollow = followPemFiles(config.tls, tls, log, (renewed) => server.renewTls(renewed));
    server.server.once('close', unfollow);
  }
  return { server, port: listeningOn };
}

async function listen(server: HttpServer, setting: string): Promise<number> {
  try {
    return await server.listen();
  } catch (error) {
    const problem = listenProblem(error, setting);
    throw problem === undefined ? error : new Error(problem, { cause: error });
  }
}

function graphqlRoutes(parts: HttpParts): Routes {
  const { config } = parts;
  const handler = new GraphQLHandler(parts);
  const answer: Handler = (request, response) => handler.handle(request, response);
  const graphql = config.introspection ? orExplorer(answer) : answer;
  const stream: Handler = (request, response) => handler.handle(request, response, true);
  return [
    ['/graphql', graphql],
    ['/graphql/stream', stream],
  ];
}

function healthRoutes({ streams, reasonNotReady }: HttpParts): Routes {
  return [
    ['/health/live', liveness],
    ['/health/ready', readiness(() => (streams.draining ? 'shutting down' : reasonNotReady()))],
  ];
}

function metricsRoutes({ registry }: HttpParts): Routes {
  return [['/metrics', metricsPage(registry)]];
}
