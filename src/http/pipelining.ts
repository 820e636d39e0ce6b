import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Has a response that waits behind an earlier one close with its connection. Node.js tells only the first of them, and who
 * counts on the event would hold a place for good.
 */
export function closeWithConnection(response: ServerResponse): void {
  const { socket } = response.req;
  const close = () => {
    if (response.socket !== null || response.closed) return; // its turn came: Node.js tells it
    response.destroy();
    response.emit('close');
  };
  socket.setMaxListeners(0); // one for each request that is sent ahead
  socket.once('close', close);
  response.once('close', () => socket.off('close', close));
}

/**
 * Resolves when `earlier`, the responses under way on a connection that Node.js has let go of for an upgrade, are written.
 * Resolves with whether what follows on the connection can be read: not when it is closed, nor when Node.js had stopped
 * reading it and would now drop what arrives.
 */
export async function whenAnswered(earlier: readonly ServerResponse[], socket: Socket): Promise<boolean> {
  const wasPaused = socket.isPaused();
  const passOnDrain = () => {
    for (const response of earlier) if (response.socket === socket) response.emit('drain');
  };
  const ignore = () => {}; // a close follows
  socket.on('drain', passOnDrain).on('error', ignore);
  await Promise.all(earlier.map((response) => new Promise<void>((resolve) => response.once('close', resolve))));
  socket.off('drain', passOnDrain).off('error', ignore);
  socket.setTimeout(0); // that of an idle connection, which this one is not
  return !wasPaused && !socket.destroyed && !socket.writableEnded;
}
