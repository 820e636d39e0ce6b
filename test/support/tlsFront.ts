import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';

/** A TLS proxy in front of a plain server on loopback. */
export async function startTlsFront(plainUrl: string, options: TlsOptions) {
  const open = new Map<TLSSocket, string>();
  const clients: string[] = [];
  const server = createServer(options, (socket) => {
    const client = socket.getPeerX509Certificate()?.subject ?? 'nobody';
    open.set(socket, client);
    clients.push(client);
    socket.once('close', () => open.delete(socket));
    const onward = connect(Number(new URL(plainUrl).port), '127.0.0.1');
    socket.pipe(onward).pipe(socket);
    socket.on('error', () => onward.destroy()).on('close', () => onward.destroy());
    onward.on('error', () => socket.destroy()).on('close', () => socket.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}${new URL(plainUrl).pathname.replace(/\/$/, '')}`,
    /** The subject of the client certificate of each connection, in order. */
    clients,
    /** The same of the connections that are open. */
    openClients: () => [...open.values()],
    stop: async () => {
      for (const socket of open.keys()) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
