import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { handleProtocols } from 'graphql-ws';
import { type ServerOptions, WebSocketServer } from 'ws';
import type { Release } from '../admission/Places.js';
import type { GatewayError } from '../errors/errors.js';
import { type Edge, shuttingDown } from '../http/edge.js';
import { requestIdOf } from '../http/facts.js';
import type { UpgradeHandler } from '../http/HttpServer.js';
import { clientOf } from '../operations/GraphQLRequest.js';
import { OperationRecord } from '../operations/Operation.js';
import { SocketSession } from './SocketSession.js';

/** Milliseconds that a peer may take to answer our close frame, or to end the connection after sending its own. */
const closeGraceMs = 1000;

/** Estimated time of an upgrade, in milliseconds. */
const upgradeMs = 0.5;

/** The entry point of WebSockets: accepts or refuses each. Those of an address come in turn. */
export function webSocketHandler(edge: Edge): UpgradeHandler {
  const settings: ServerOptions & { readonly closeTimeout: number } = {
    noServer: true,
    maxPayload: edge.operations.limits.bodyBytes,
    handleProtocols,
    maxFragments: 256, // each takes a hundred bytes, however short
    clientTracking: false,
    perMessageDeflate: false, // a small message may unpack to a huge one, and the gateway's messages are short
    allowSynchronousEvents: false, // others get a turn after each message: one packet has room for ten thousand pings
    autoPong: false, // SocketSession sends pongs, to count the bytes that the peer leaves unread
    closeTimeout: closeGraceMs,
  };
  const sockets = new WebSocketServer(settings);
  const newcomers: Newcomers = new Map();
  return async (request, socket, head) => {
    const remoteAddress = edge.addressOf(request);
    const facts = {
      request,
      requestId: requestIdOf(request),
      client: clientOf(request.headers),
      startedAt: performance.now(),
      remoteAddress,
    };
    socket.on('error', () => {}); // unhandled, it would end the process; `close` follows
    if (!(await edge.quota.begin(remoteAddress, upgradeMs, socket))) return;
    try {
      edge.origins.refuseForeignPage(request);
      const leavePlace = admit(edge, newcomers, socket, remoteAddress);
      socket.once('close', leavePlace);
      sockets.handleUpgrade(request, socket, head, (opened) => {
        new SocketSession(opened, request, facts, leavePlace, edge);
      });
    } catch (error) {
      edge.operations.refuse(new OperationRecord(facts, 'ws'), error);
      refuseUpgrade(socket, error as GatewayError, facts.requestId);
    }
  };
}

/** The unauthenticated connections, the oldest first. The key of each gives back its place. */
type Newcomers = Map<Release, Duplex>;

/** Takes a place among the unauthenticated connections, if need be that of the oldest. @throws GatewayError */
function admit({ places, streams }: Edge, newcomers: Newcomers, socket: Duplex, address: string | undefined): Release {
  if (streams.draining) throw shuttingDown;
  places.assertRoom('streams', undefined); // the caller takes the place, once it is known
  // An honest client authenticates within a moment, so the oldest newcomer is probably not honest.
  for (const [leave, oldest] of newcomers) {
    // An address that has its share already is refused below: nobody is given up for it.
    if (places.hasRoom('newcomers', undefined) || !places.hasShare('newcomers', address)) break;
    leave();
    oldest.destroy();
  }
  const giveBack = places.take('newcomers', address);
  const leavePlace = () => {
    newcomers.delete(leavePlace);
    giveBack();
  };
  newcomers.set(leavePlace, socket);
  return leavePlace;
}

function refuseUpgrade(socket: Duplex, refusal: GatewayError, requestId: string): void {
  const { httpStatus = 503, message, retryAfterSeconds } = refusal;
  socket.once('finish', () => socket.destroy()); // otherwise the socket stays open until the peer closes it
  const wait = retryAfterSeconds === undefined ? '' : `Retry-After: ${retryAfterSeconds}\r\n`;
  socket.end(
    `HTTP/1.1 ${httpStatus} ${STATUS_CODES[httpStatus]}\r\n${wait}X-Request-Id: ${requestId}\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(message) + 1}\r\n\r\n${message}\n`,
  );
}
