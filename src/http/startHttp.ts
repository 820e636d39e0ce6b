import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { prometheusContentType } from 'prom-client';
import { networkOf } from '../admission/Quota.js';
import { webSocketHandler } from '../live/webSocketHandler.js';
import { followPemFiles, type Pem } from '../network/pemFiles.js';
import type { Logger } from '../observability/log.js';
import { pause } from '../process/pause.js';
import { refuseAtOnce, writeBody } from './answering.js';
import type { Edge } from './edge.js';
import { graphqlHandler } from './graphqlHandler.js';
import { HttpServer, type Routes } from './HttpServer.js';
import { explorerRoutes, orExplorer } from './pages.js';

/**
 * Starts the server of METRICS_PORT, if that is set. It has no TLS: probes and Prometheus have no certificate.
 * @throws Error in one plain line
 */
export async function startMetricsServer(edge: Edge): Promise<HttpServer | undefined> {
  const { config, log } = edge;
  if (config.METRICS_PORT === undefined) return undefined;
  const routes = { ...healthRoutes(edge), ...metricsRoute(edge) };
  const server = new HttpServer({ host: config.HOST, port: config.METRICS_PORT, routes, log });
  await server.listen('METRICS_PORT');
  return server;
}

/** Starts the server of PORT. @throws Error in one plain line */
export async function startHttp(edge: Edge): Promise<HttpServer> {
  const { config, log } = edge;
  const answer = graphqlHandler(edge);
  const routes: Routes = {
    '/graphql': config.INTROSPECTION ? orExplorer(answer) : answer,
    '/graphql/stream': graphqlHandler(edge, { json: undefined, stream: 'sse' }),
    ...healthRoutes(edge),
    ...(config.METRICS_PORT === undefined && metricsRoute(edge)),
    ...(config.INTROSPECTION && explorerRoutes(edge.explorerOperations, config.AUTH_MODE === 'jwt')),
  };
  const { HOST: host, PORT: port, tls: files } = config;
  const renew = (renewed: Pem) => (server.server as HttpsServer).setSecureContext(renewed);
  const tls = files && followPemFiles(files, edge, renew);
  const before = beforeRoutes(edge);
  const upgrade = webSocketHandler(edge);
  const server = new HttpServer({ host, port, tls, routes, before, upgrade, log });
  if (files?.ca) server.server.on('tlsClientError', certificateRefusalLogger(log));
  await server.listen('PORT');
  return server;
}

/** A listener that logs why certificates of clients are refused: each reason once a minute, so that nobody can flood the log. */
function certificateRefusalLogger(log: Logger): (error: NodeJS.ErrnoException, socket: TLSSocket) => void {
  const loggedAt = new Map<string, number>();
  return ({ code = '' }, { authorizationError }) => {
    const isMissing = code === 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE';
    if (!isMissing && !authorizationError) return; // no certificate was wrong: a scan, or another protocol
    const reason = isMissing ? 'no client certificate' : String(authorizationError);
    if (performance.now() - (loggedAt.get(reason) ?? -Infinity) < 60_000) return;
    loggedAt.set(reason, performance.now());
    log.warn({ reason }, 'a client is refused for its certificate');
  };
}

/** Estimated time of a request that is no operation, in milliseconds. */
const shortWorkMs = 0.1;

/**
 * Lets requests that are no operation wait for the turn of their address: nothing else limits them, so a flood would fill the
 * event loop. Then answers preflights.
 */
function beforeRoutes({ quota, addressOf, origins }: Edge) {
  return (request: IncomingMessage, response: ServerResponse): boolean | Promise<boolean> => {
    const isOperation = request.method !== 'OPTIONS' && /^\/graphql(\/stream)?(\?|$)/.test(request.url ?? '');
    if (isOperation) return origins.answer(request, response);
    return quota.begin(addressOf(request), shortWorkMs, request.socket).then((hasBegun) => {
      if (hasBegun) return origins.answer(request, response);
      refuseAtOnce(response);
      return true;
    });
  };
}

function healthRoutes({ draining, reasonNotReady }: Edge): Routes {
  const json = 'application/json';
  return {
    // Does not depend on the service or the store: a restart would not mend those.
    '/health/live': (_, response) => writeBody(response, 200, json, '{"status":"live"}\n'),
    '/health/ready': (_, response) => {
      const reason = draining.aborted ? 'shutting down' : reasonNotReady();
      const status = reason === undefined ? 'ready' : 'not ready';
      writeBody(response, reason === undefined ? 200 : 503, json, `${JSON.stringify({ status, reason })}\n`);
    },
  };
}

/** How long a request for metrics waits for others that share its answer, in milliseconds: making one takes a few. */
const metricsEveryMs = 100;

/** Metrics, written at most ten times a second. */
function metricsRoute({ metrics: { registry }, unread, addressOf }: Edge): Routes {
  let next: Promise<Buffer> | undefined;
  const write = async () => {
    await pause(metricsEveryMs);
    next = undefined;
    return Buffer.from(await registry.metrics()); // one copy, however many have not read it yet
  };
  return {
    '/metrics': async (request, response) => {
      next ??= write();
      writeBody(response, 200, prometheusContentType, await next);
      unread.holdAnswer(response, networkOf(addressOf(request)));
    },
  };
}
