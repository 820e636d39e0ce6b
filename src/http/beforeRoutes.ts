import type { IncomingMessage, ServerResponse } from 'node:http';
import cors from 'cors';
import type { Config } from '../config/config.js';
import { GatewayError } from '../errors/errors.js';
import { AddressRanges } from '../network/AddressRanges.js';
import { Peers } from '../network/peer.js';
import { clientOf } from '../operations/clientName.js';
import type { Operations } from '../operations/Operations.js';
import { refuseInTurn } from './answering.js';
import { requestIdOf } from './facts.js';
import type { HttpServerOptions } from './HttpServer.js';

type Before = HttpServerOptions['before'];

export type MeetPeer = (request: IncomingMessage) => string | undefined;

/** Returns a function that sets `request.peer` and returns why to refuse it, if so. Undefined when no setting needs it. */
export function peerMeeter({ tls, trustedProxies }: Config): MeetPeer | undefined {
  const wantsCertificates = tls?.ca !== undefined;
  if (!wantsCertificates && trustedProxies === undefined) return undefined;
  const peers = new Peers({ wantsCertificates, trusted: trustedProxies && new AddressRanges(trustedProxies) });
  return (request) => peers.meet(request);
}

/** The checks before every route: CORS and client certificates. Health probes need no certificate. */
export function beforeRoutes(config: Config, meetPeer: MeetPeer | undefined, operations: Operations): Before {
  const isAnsweredByOrigin = crossOrigin(config);
  if (meetPeer === undefined) return isAnsweredByOrigin;
  return (request, response) => {
    if (isAnsweredByOrigin(request, response)) return true;
    const reason = meetPeer(request);
    if (reason === undefined || request.url?.startsWith('/health/')) return false;
    void refuse(request, response, operations, reason);
    return true;
  };
}

async function refuse(request: IncomingMessage, response: ServerResponse, operations: Operations, reason: string) {
  const message = 'A client certificate of an accepted authority is required';
  const error = new GatewayError('FORBIDDEN', message, { httpStatus: 403, reason });
  const requestId = requestIdOf(request);
  const { headers, peer } = request;
  const remoteAddress = peer?.address ?? request.socket.remoteAddress;
  const facts = { requestId, startedAt: performance.now(), client: clientOf(headers), peer, remoteAddress };
  await refuseInTurn(response, operations, operations.refuse(error, facts, 'http'), facts);
}

/** Answers preflights, and marks the answers that browsers of an allowed origin may read. */
function crossOrigin({ corsOrigins }: Config): Before {
  const exposedHeaders = ['x-request-id', 'retry-after', 'ratelimit', 'ratelimit-policy'];
  const allowOrigin = cors({ origin: [...corsOrigins], methods: ['GET', 'POST'], exposedHeaders, maxAge: 600 });
  return (request, response) => {
    if (request.headers.origin === undefined) return false; // no browser of another origin is asking
    let answered = true;
    allowOrigin(request, response, () => {
      answered = false;
    });
    return answered;
  };
}
