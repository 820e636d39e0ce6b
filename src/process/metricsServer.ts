import type { Registry } from 'prom-client';
import type { Config } from '../config/config.js';
import { HttpServer } from '../http/HttpServer.js';
import { metricsPage } from '../http/health.js';
import type { Logger } from '../observability/log.js';
import { listenProblem } from './listenProblem.js';

/** Serves `/metrics`, and nothing else, on METRICS_PORT; undefined when that is not set. @throws Error in one plain line */
export async function serveMetrics(config: Config, registry: Registry, log: Logger): Promise<HttpServer | undefined> {
  if (config.metricsPort === undefined) return undefined;
  const server = new HttpServer({
    host: config.host,
    port: config.metricsPort,
    tls: undefined,
    routes: new Map([['/metrics', metricsPage(registry)]]),
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
