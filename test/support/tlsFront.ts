import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';

/** A TLS proxy in front of a plain server on loopback. */
export async function startTlsFront(plainUrl: string, options: TlsOptions) {
  const sockets = new Set<TLSSocket>();
  const clients: string[] = [];
  const server = createServer(options, (socket) => {
    sockets.add(socket);
    clients.push(socket.getPeerX509Certificate()?.subject ?? 'nobody');
    const onward = connect(Number(new URL(plainUrl).port), '127.0.0.1');
    socket.pipe(onward).pipe(socket);
    socket.on('error', () => onward.destroy()).on('close', () => onward.destroy());
    onward.on('error', () => socket.destroy()).on('close', () => socket.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    server,
    port,
    url: `https://127.0.0.1:${port}${new URL(plainUrl).pathname.replace(/\/$/, '')}`,
    /** The subject of the client certificate of each connection, in order. */
    clients,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
