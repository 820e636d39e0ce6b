import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { type CertificateFiles, issueCertificate, makeAuthority } from '../../support/certificate.js';
import { freePort } from '../../support/freePort.js';
import { startTestGateway } from '../../support/gateway.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

const directory = scratch();
const file = (name: string) => join(directory, name);
const clients = makeAuthority(directory, 'clients');
const strangers = makeAuthority(directory, 'strangers');
const router = clients.issue('router', 'DNS:router.example');
const expired = clients.issue('late', 'DNS:late.example', -1);
const foreign = strangers.issue('foreign', 'DNS:router.example');
const selfSigned = { certFile: file('self.crt'), keyFile: file('self.key') };
const served = { certFile: file('tls.crt'), keyFile: file('tls.key') };
const accepted = file('accepted.crt');

issueCertificate('self', selfSigned);
issueCertificate('gateway', served);
copyFileSync(clients.certFile, accepted);
const metricsPort = await freePort();
const gateway = await startTestGateway({
  METRICS_PORT: String(metricsPort),
  TLS_CERT_FILE: served.certFile,
  TLS_KEY_FILE: served.keyFile,
  TLS_CLIENT_CA_FILE: accepted,
});

interface Sent {
  readonly path?: string;
  readonly query?: string;
}

/** Sends on a connection of its own, with the certificate if there is one. */
async function send(client: CertificateFiles | undefined, { path = '/graphql', query }: Sent = {}) {
  const sending = request({
    host: '127.0.0.1',
    port: gateway.gateway.port,
    path,
    agent: false,
    rejectUnauthorized: false,
    ...(client && { cert: readFileSync(client.certFile), key: readFileSync(client.keyFile) }),
    method: query === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json' },
  });
  sending.end(query === undefined ? undefined : JSON.stringify({ query }));
  const [response] = (await once(sending, 'response')) as [IncomingMessage];
  return response.resume().statusCode;
}

const warnings = () => gateway.logs.filter((line) => line.includes('a client is refused for its certificate'));

describe('a client', () => {
  test.each([
    ['without a certificate', undefined, /"no client certificate"/],
    ['with an expired one', expired, /"CERT_HAS_EXPIRED"/],
    ['with one of another authority', foreign, /"UNABLE_TO_(VERIFY_LEAF|GET_ISSUER)/],
    ['with a self-signed one', selfSigned, /"DEPTH_ZERO_SELF_SIGNED_CERT"/],
  ])('%s is refused in the handshake on every path, and one line says why', async (_, client, reason) => {
    for (const path of ['/graphql', '/health/live', '/nowhere']) {
      await expect(send(client, { path })).rejects.toThrow(/ECONNRESET|socket hang up|alert|SSL/i);
    }
    await until(() => warnings().some((line) => reason.test(line)));
    expect(warnings().filter((line) => reason.test(line))).toHaveLength(1);
  });

  test('with an accepted one is served, and a probe without one on METRICS_PORT', async () => {
    expect(await send(router, { query: '{ __typename }' })).toBe(200);
    for (const path of ['/health/live', '/health/ready', '/metrics']) {
      expect((await fetch(`http://127.0.0.1:${metricsPort}${path}`)).status).toBe(200);
    }
    expect((await fetch(`http://127.0.0.1:${metricsPort}/graphql`)).status).toBe(404);
  });

  test('is accepted by the authorities in the file as it is now; one that holds none changes nothing', async () => {
    const isLetIn = (client: CertificateFiles) =>
      send(client, { path: '/health/live' }).then(
        (status) => status === 200,
        () => false,
      );
    writeFileSync(accepted, '-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n');
    const line = 'TLS_CLIENT_CA_FILE does not hold certificates in PEM';
    await until(() => gateway.output().includes(line));
    expect(await isLetIn(router)).toBe(true);
    copyFileSync(strangers.certFile, accepted);
    await until(() => isLetIn(foreign));
    expect(await isLetIn(router)).toBe(false);
  });
});
