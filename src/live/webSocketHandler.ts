import type { Duplex } from 'node:stream';
import { handleProtocols } from 'graphql-ws';
import { LRUCache } from 'lru-cache';
import { type ServerOptions, WebSocketServer } from 'ws';
import { boundsFor, type Release, rateLimited } from '../admission/Places.js';
import { networkOf } from '../admission/Quota.js';
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

/** Not a closure: that would keep the request in memory until the end of a connection that was destroyed. */
function ignore(): void {}

/** The entry point of WebSockets: accepts or refuses each. Those of an address come in turn. */
export function webSocketHandler(edge: Edge): UpgradeHandler {
  const settings: ServerOptions & { readonly closeTimeout: number } = {
    noServer: true,
    maxPayload: edge.config.MAX_BODY_BYTES,
    handleProtocols,
    maxFragments: 256, // each takes a hundred bytes, however short
    maxBufferedChunks: 256 + edge.config.MAX_BODY_BYTES / 256, // as they came: a peer may send single bytes
    perMessageDeflate: false, // a small message may unpack to a huge one, and the gateway's messages are short
    allowSynchronousEvents: false, // others get a turn after each message: one packet has room for ten thousand pings
    autoPong: false, // SocketSession sends pongs, to count the bytes that the peer leaves unread
    closeTimeout: closeGraceMs,
  };
  const sockets = new WebSocketServer(settings);
  /** The unauthenticated connections, with what gives back the place of each. */
  const newcomers = new LRUCache<Duplex, Release>({
    max: 2 * boundsFor(edge.config).newcomers.perHolder,
    dispose: (giveBack, socket, reason) => {
      giveBack();
      // An honest client authenticates within a moment, so the oldest newcomer is probably not honest.
      if (reason === 'evict') socket.destroy();
    },
  });
  // `handleUpgrade` calls this before it returns, so the error is caught below, like any other refusal.
  sockets.on('wsClientError', (error) => {
    throw badRequest(`Not a WebSocket handshake: ${error.message}`);
  });
  // A listener of each socket on the signal would be looked for among all of them whenever one comes or goes.
  edge.draining.addEventListener('abort', () => {
    for (const socket of sockets.clients) socket.emit('draining');
  });
  return async (request, head, response) => {
    const { socket } = request;
    const facts = new HttpFacts(response, edge.addressOf(request), plainJson);
    const { requestId, client, startedAt, remoteAddress } = facts;
    socket.on('error', ignore); // unhandled, it would end the process; `close` follows
    const hasBegun = await edge.quota.begin(remoteAddress, upgradeMs, socket);
    if (socket.destroyed) return;
    try {
      if (!hasBegun) throw rateLimited('Too many requests of this address are waiting');
      edge.origins.refuseForeignPage(request);
      if (edge.draining.aborted) throw shuttingDown;
      newcomers.set(socket, edge.places.take('newcomers', networkOf(remoteAddress)));
      const leavePlace = () => newcomers.delete(socket);
      socket.once('close', leavePlace);
      sockets.handleUpgrade(request, socket, head, (opened) => {
        new SocketSession(opened, { request, requestId, client, startedAt, remoteAddress }, leavePlace, edge);
      });
    } catch (error) {
      const refusal = edge.operations.refuse(new OperationRecord(facts, 'ws'), error);
      response.assignSocket(socket);
      response.once('finish', () => socket.destroySoon());
      response.shouldKeepAlive = false;
      response.setHeader('sec-websocket-version', '13'); // RFC 6455, 4.4
      await refuseInTurn(facts, edge.quota, refusal);
    }
  };
}
