import { prometheusContentType, type Registry } from 'prom-client';
import { writePage } from './answering.js';
import type { Handler } from './HttpServer.js';

/** `/health/live`: the process answers. It says nothing about the service or the store: a restart would not mend those. */
export const liveness: Handler = (_, response) => writePage(response, 200, 'application/json', '{"status":"live"}\n');

/** `/health/ready`: whether requests should be sent here; `reasonNotReady` says why not. */
export function readiness(reasonNotReady: () => string | undefined): Handler {
  return (_, response) => {
    const reason = reasonNotReady();
    const state = reason === undefined ? { status: 'ready' } : { status: 'not ready', reason };
    writePage(response, reason === undefined ? 200 : 503, 'application/json', `${JSON.stringify(state)}\n`);
  };
}

/** `/metrics`: what is counted, for a Prometheus to scrape. */
export function metricsPage(registry: Registry): Handler {
  return async (_, response) => writePage(response, 200, prometheusContentType, await registry.metrics());
}
