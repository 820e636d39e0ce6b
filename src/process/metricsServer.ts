import type { Config } from '../config/config.js';
import { HttpServer } from '../http/HttpServer.js';
import { metricsPage } from '../http/health.js';
import type { MetricsText } from '../observability/exposition.js';

/** Serves `/metrics`, and nothing else, on METRICS_PORT; undefined when that is not set. @throws Error in one plain line */
export async function serveMetrics(config: Config, text: MetricsText): Promise<HttpServer | undefined> {
  if (config.metricsPort === undefined) return undefined;
  const server = new HttpServer({
    host: config.host,
    port: config.metricsPort,
    tls: undefined,
    routes: new Map([['/metrics', metricsPage(text)]]),
    before: () => false,
  });
  try {
    await server.listen();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new Error('METRICS_PORT is in use by another process: expected a free one');
  }
  return server;
}
