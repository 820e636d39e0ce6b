import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { pipeline } from 'node:stream';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { atEnd } from './atEnd.js';
import type { CertificateFiles } from './certificate.js';
import { serve } from './serve.js';

/** A TLS proxy in front of a plain server on loopback, with the present content of these files. */
export async function startTlsFront(plainUrl: string, files: CertificateFiles, options: TlsOptions = {}) {
  const open = new Map<TLSSocket, string>();
  const clients: string[] = [];
  const server = createServer(
    { cert: readFileSync(files.certFile), key: readFileSync(files.keyFile), ...options },
    (socket) => {
      const client = socket.getPeerX509Certificate()?.subject ?? 'nobody';
      open.set(socket, client);
      clients.push(client);
      socket.once('close', () => open.delete(socket));
      const onward = connect(Number(new URL(plainUrl).port), '127.0.0.1');
      pipeline(socket.setMaxListeners(20), onward, socket, () => {}); // the end of one ends the other
    },
  );
  const origin = await serve(server);
  atEnd(() => {
    for (const socket of open.keys()) socket.destroy();
  });
  return {
    url: `${origin.replace('http', 'https')}${new URL(plainUrl).pathname.replace(/\/$/, '')}`,
    /** The subject of the client certificate of each connection, in order. */
    clients,
    /** The same of the connections that are open. */
    openClients: () => [...open.values()],
  };
}
