import type { Config } from '../config/config.js';
import { type Handler, HttpServer } from '../http/HttpServer.js';
import type { Logger } from '../observability/log.js';
import { listenProblem } from './listenProblem.js';

/** Serves `/metrics` and the health on METRICS_PORT, without TLS; undefined when that is not set. @throws Error in one plain line */
export async function serveMetrics(
  config: Config,
  routes: ReadonlyMap<string, Handler>,
  log: Logger,
): Promise<HttpServer | undefined> {
  if (config.metricsPort === undefined) return undefined;
  const server = new HttpServer({
    host: config.host,
    port: config.metricsPort,
    tls: undefined,
    routes,
    before: () => false,
    log,
  });
  try {
    await server.listen();
  } catch (error) {
    const problem = listenProblem(error, 'METRICS_PORT');
    throw problem === undefined ? error : new Error(problem, { cause: error });
  }
  return server;
}
