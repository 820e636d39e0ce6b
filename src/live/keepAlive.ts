import type { WebSocket } from 'ws';

/** Milliseconds between two signs of life on an open stream: proxies close idle ones. */
export const defaultKeepAliveMs = 12_000;
/** Pings that a peer may leave unanswered: one that is busy reads them late. */
const maxUnanswered = 3;

/**
 * Calls `ping` at intervals, and ends a socket whose peer answers no ping. While bytes wait to be sent nothing is asked:
 * the peer would have to read them first, and {@link Unread} ends one that does not.
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
