import { createHash, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Authenticator } from '../../src/auth/Authenticator.js';
import { credentialsOf, identifier } from '../../src/auth/identify.js';
import { type Handler, HttpServer } from '../../src/http/HttpServer.js';
import { createLogger } from '../../src/observability/log.js';
import { issueCertificate } from './certificate.js';

/** A self-signed pair, and the thumbprint of its certificate as RFC 8705 has it: the SHA-256 of the DER form. */
export function certificateFor(name: string) {
  const directory = mkdtempSync(join(tmpdir(), 'certificate-'));
  const files = { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') };
  issueCertificate(name, files);
  const [cert, key] = [readFileSync(files.certFile), readFileSync(files.keyFile)];
  rmSync(directory, { recursive: true });
  const { raw } = new X509Certificate(cert);
  return { cert, key, raw, thumbprint: createHash('sha256').update(raw).digest('base64url') };
}

export type ClientCertificate = Pick<ReturnType<typeof certificateFor>, 'cert' | 'key'>;

/** The gateway's listener, requesting client certificates of any authority. `/who` answers with the caller. */
export async function startCertificateListener(authenticator: Authenticator) {
  const identify = identifier(authenticator, { accept: () => undefined });
  const handler: Handler = async (incoming, response) => {
    const told = await (async () => identify(credentialsOf(incoming)))().then(
      ({ caller }) => caller.subject,
      ({ message }: Error) => message,
    );
    response.end(told);
  };
  const { cert, key } = certificateFor('localhost');
  // No certificate is refused here: the thumbprint in the token decides whether it is the right one.
  const tls = { cert, key, ca: cert };
  const routes = new Map([['/who', handler]]);
  const log = createLogger('silent');
  const server = new HttpServer({ host: '127.0.0.1', port: 0, tls, routes, before: () => false, log });
  const port = await server.listen();
  return {
    server: server.server,
    /** The subject of the token, or the message of the refusal. */
    who: (token: string, client: ClientCertificate | undefined, agent: Agent | false = false) =>
      new Promise<string>((resolve, reject) => {
        const headers = { authorization: `Bearer ${token}` };
        const presented = client && { cert: client.cert, key: client.key };
        const options = { host: '127.0.0.1', port, path: '/who', headers, agent, rejectUnauthorized: false };
        const call = request({ ...options, ...presented }, async (response) => {
          let text = '';
          for await (const chunk of response.setEncoding('utf8')) text += chunk;
          resolve(text);
        });
        call.on('error', reject).end();
      }),
    stop: () => server.drain(0),
  };
}
