import { Registry } from 'prom-client';
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

/** `/metrics`: what `text` gives, in Prometheus' text format. */
export function metricsPage(text: () => Promise<string>): Handler {
  return async (_, response) => {
    const page = await text();
    const headers = { 'content-type': Registry.PROMETHEUS_CONTENT_TYPE, 'cache-control': 'no-store' };
    response.writeHead(200, headers).end(page);
  };
}
