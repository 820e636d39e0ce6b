import type { WebSocket } from 'ws';
import { defaultKeepAliveMs } from '../http/EventStream.js';

/** Pings that a peer may leave unanswered: a busy peer answers late. */
const maxUnanswered = 3;

/**
 * Calls `ping` at intervals, and ends a socket whose peer answers no ping. While bytes wait to be sent it does not ping: the
 * peer would have to read them first, and {@link Unread} ends a peer that does not. Returns how to stop.
 */
export function keepAlive(socket: WebSocket, ping: () => void, everyMs = defaultKeepAliveMs): () => void {
  let unanswered = 0;
  const restart = () => {
    unanswered = 0;
  };
  socket.on('pong', restart);
  const timer = setInterval(() => {
    if (socket.bufferedAmount > 0) return restart();
    if (unanswered === maxUnanswered) return socket.terminate();
    unanswered += 1;
    ping();
  }, everyMs);
  return () => clearInterval(timer);
}
