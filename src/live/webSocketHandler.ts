import type { Duplex } from 'node:stream';
import { handleProtocols } from 'graphql-ws';
import { type ServerOptions, WebSocketServer } from 'ws';
import type { Release } from '../admission/Places.js';
import { plainJson } from '../http/accept.js';
import { refuseInTurn } from '../http/answering.js';
import { type Edge, shuttingDown } from '../http/edge.js';
import { HttpFacts } from '../http/facts.js';
import type { UpgradeHandler } from '../http/HttpServer.js';
import { badRequest } from '../operations/GraphQLRequest.js';
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
    maxPayload: edge.config.MAX_BODY_BYTES,
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
  // `handleUpgrade` calls this before it returns, so the error is caught below, like any other refusal.
  sockets.on('wsClientError', (error) => {
    throw badRequest(`Not a WebSocket handshake: ${error.message}`);
  });
  return async (request, head, response) => {
    const { socket } = request;
    const facts = new HttpFacts(response, edge.addressOf(request), plainJson);
    const { requestId, client, startedAt, remoteAddress } = facts;
    socket.on('error', () => {}); // unhandled, it would end the process; `close` follows
    if (!(await edge.quota.begin(remoteAddress, upgradeMs, socket))) return;
    try {
      edge.origins.refuseForeignPage(request);
      const leavePlace = admit(edge, newcomers, socket, remoteAddress);
      socket.once('close', leavePlace);
      sockets.handleUpgrade(request, socket, head, (opened) => {
        new SocketSession(opened, request, { request, requestId, client, startedAt, remoteAddress }, leavePlace, edge);
      });
    } catch (error) {
      const refusal = edge.operations.refuse(new OperationRecord(facts, 'ws'), error);
      response.assignSocket(socket);
      response.once('finish', () => socket.destroySoon());
      response.shouldKeepAlive = false;
      response.setHeader('sec-websocket-version', '13'); // RFC 6455, 4.4
      await refuseInTurn(response, edge.quota, refusal, facts);
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
