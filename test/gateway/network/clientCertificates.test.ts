import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type CertificateFiles, issueCertificate, makeAuthority } from '../../support/certificate.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { until } from '../../support/until.js';

const directory = mkdtempSync(join(tmpdir(), 'client-certificates-'));
const file = (name: string) => join(directory, name);
const clients = makeAuthority(directory, 'clients');
const strangers = makeAuthority(directory, 'strangers');
const router = clients.issue('router', 'DNS:router.example,URI:spiffe://example/router');
/** An address with commas: if these separated names, one would be the name of the router. */
const forger = clients.issue('forger', '@names\n[names]\nURI.1=https://m.example/?a, DNS:router.example, b');
const person = clients.issue('Ada Planted', 'email:ada@planted.example');
const expired = clients.issue('late', 'DNS:late.example', -1);
const foreign = strangers.issue('foreign', 'DNS:router.example');
const selfSigned = { certFile: file('self.crt'), keyFile: file('self.key') };
const served = { certFile: file('tls.crt'), keyFile: file('tls.key') };
const accepted = file('accepted.crt');
let gateway: TestGateway;

beforeAll(async () => {
  issueCertificate('self', selfSigned);
  issueCertificate('gateway', served);
  copyFileSync(clients.certFile, accepted);
  gateway = await startTestGateway({
    TLS_CERT_FILE: served.certFile,
    TLS_KEY_FILE: served.keyFile,
    TLS_CLIENT_CA_FILE: accepted,
  });
});

afterAll(async () => {
  await gateway?.stop();
  rmSync(directory, { recursive: true, force: true });
});

interface Sent {
  readonly path?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends on a connection of its own, with the certificate if there is one. */
function send(client: CertificateFiles | undefined, { path = '/graphql', query, headers }: Sent = {}) {
  return new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    const sending = request({
      ...{ host: '127.0.0.1', port: gateway.gateway.port, path, agent: false, rejectUnauthorized: false },
      ...(client && { cert: readFileSync(client.certFile), key: readFileSync(client.keyFile) }),
      method: query === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...headers },
    });
    const answer = async (response: IncomingMessage) => {
      let text = '';
      for await (const chunk of response) text += String(chunk);
      resolve({ status: response.statusCode, text });
    };
    sending.once('response', (response) => void answer(response)).once('error', reject);
    sending.end(query === undefined ? undefined : JSON.stringify({ query }));
  });
}

const audited = () => gateway.logs.map((line) => JSON.parse(line)).filter(({ audit }) => audit !== undefined);
const lastAudited = (action: string) => audited().findLast(({ audit }) => audit === action);
const codeIn = (text: string) => JSON.parse(text).errors?.[0]?.extensions.code;

describe('a client', () => {
  test.each([
    ['without a certificate', undefined, 'no client certificate'],
    ['with an expired one', expired, 'client certificate: CERT_HAS_EXPIRED'],
    ['with one of another authority', foreign, /^client certificate: UNABLE_TO_(VERIFY_LEAF|GET_ISSUER)/],
    ['with a self-signed one', selfSigned, 'client certificate: DEPTH_ZERO_SELF_SIGNED_CERT'],
  ])('%s is refused, and an audit line says why', async (_, client, reason) => {
    const { status, text } = await send(client, { query: '{ __typename }' });
    expect([status, codeIn(text)]).toEqual([403, 'FORBIDDEN']);
    const line = lastAudited('access-denied');
    expect(line).toMatchObject({ outcome: 'denied' });
    expect(line).not.toHaveProperty('certificate');
    expect(line.reason).toEqual(typeof reason === 'string' ? reason : expect.stringMatching(reason));
  });

  test('without a certificate gets no other path and no socket, but probes are answered', async () => {
    for (const path of ['/', '/metrics', '/graphql/stream', '/nowhere']) {
      expect(await send(undefined, { path })).toMatchObject({ status: 403 });
    }
    const headers = {
      ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
      ...{ 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==', 'sec-websocket-protocol': 'graphql-transport-ws' },
    };
    expect(await send(undefined, { headers })).toMatchObject({ status: 403 });
    expect(await send(undefined, { path: '/health/live' })).toMatchObject({ status: 200 });
    expect(await send(undefined, { path: '/health/ready' })).toMatchObject({ status: 200 });
  });

  test('is named in audit lines: a machine as it is called, a person by a keyed hash', async () => {
    const query = 'mutation { createClientLink(input: {}) { replayed } }';
    expect(await send(router, { query })).toMatchObject({ status: 200 });
    expect(lastAudited('client-link-requested')).toMatchObject({ certificate: 'router.example' });
    expect(await send(person, { query })).toMatchObject({ status: 200 });
    expect(lastAudited('client-link-requested').certificate).toMatch(/^[\w-]{20,}$/);
    expect(gateway.logs.join('')).not.toMatch(/planted/i);
  });

  test('has no name that only stands inside another one', async () => {
    const query = 'mutation { createClientLink(input: {}) { replayed } }';
    expect(await send(forger, { query })).toMatchObject({ status: 200 });
    expect(lastAudited('client-link-requested').certificate).toMatch(/^[\w-]{20,}$/);
  });

  test('is accepted by the authorities in the file as it is now; one that holds none changes nothing', async () => {
    const isLetIn = async (client: CertificateFiles) => (await send(client, { path: '/metrics' })).status === 200;
    writeFileSync(accepted, '-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n');
    const line = 'TLS_CLIENT_CA_FILE does not hold certificates in PEM';
    await until(() => gateway.logs.some((logged) => logged.includes(line)));
    expect(await isLetIn(router)).toBe(true);
    copyFileSync(strangers.certFile, accepted);
    await until(() => isLetIn(foreign));
    expect(await isLetIn(router)).toBe(false);
  });
});

test('without TLS_CLIENT_CA_FILE no certificate is asked for', async () => {
  const open = await startTestGateway({ TLS_CERT_FILE: served.certFile, TLS_KEY_FILE: served.keyFile });
  try {
    const options = { host: '127.0.0.1', port: open.gateway.port, rejectUnauthorized: false, agent: false as const };
    const answered = new Promise<number | undefined>((resolve, reject) => {
      request({ ...options, path: '/metrics' }, (response) => resolve(response.resume().statusCode))
        .once('error', reject)
        .end();
    });
    expect(await answered).toBe(200);
  } finally {
    await open.stop();
  }
});
