import type { Registry } from 'prom-client';
import type { Handler } from './HttpServer.js';

/** `/health/live`: the process answers. It says nothing about the service or the store: a restart would not mend those. */
export const liveness: Handler = (_, response) => {
  response
    .writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    .end('{"status":"live"}\n');
};

/** `/health/ready`: whether requests should be sent here; `reasonNotReady` says why not. */
export function readiness(reasonNotReady: () => string | undefined): Handler {
  return (_, response) => {
    const reason = reasonNotReady();
    response.writeHead(reason === undefined ? 200 : 503, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
    });
    response.end(`${JSON.stringify(reason === undefined ? { status: 'ready' } : { status: 'not ready', reason })}\n`);
  };
}

/** `/metrics`: the registry in Prometheus' text format. */
export function metricsPage(registry: Registry): Handler {
  return async (_, response) => {
    const text = await registry.metrics();
    response.writeHead(200, { 'content-type': registry.contentType, 'cache-control': 'no-store' }).end(text);
  };
}
