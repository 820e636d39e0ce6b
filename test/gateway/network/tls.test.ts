import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { HttpServer } from '../../../src/http/HttpServer.js';
import { issueCertificate } from '../../support/certificate.js';
import { startTestGateway } from '../../support/gateway.js';
import { recordedLog } from '../../support/recordedLog.js';
import { scratch } from '../../support/scratch.js';
import { until } from '../../support/until.js';

const directory = scratch();
const certFile = join(directory, 'tls.crt');
const keyFile = join(directory, 'tls.key');

issueCertificate('first', { certFile, keyFile });
const gateway = await startTestGateway({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });

/** What a connection shows once its handshake is over. */
async function shownBy<T>(show: (socket: TLSSocket) => T, options: ConnectionOptions = {}): Promise<T> {
  const socket = connect({ port: gateway.gateway.port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
  await once(socket, 'secureConnect');
  const shown = show(socket);
  socket.destroy();
  return shown;
}

const presented = () => shownBy((socket) => socket.getPeerCertificate().subject.CN);

describe('HTTPS', () => {
  test('is served from the files, with HSTS', async () => {
    const sent = get(`https://127.0.0.1:${gateway.gateway.port}/health/live`, { rejectUnauthorized: false });
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const { statusCode, headers } = response.resume();
    expect([statusCode, headers['strict-transport-security']]).toEqual([200, 'max-age=31536000; includeSubDomains']);
  });

  test('is TLS 1.3 where the client knows it, and nothing before 1.2', async () => {
    const negotiated = (options: ConnectionOptions) => shownBy((socket) => socket.getProtocol(), options);
    expect(await negotiated({})).toBe('TLSv1.3');
    expect(await negotiated({ maxVersion: 'TLSv1.2' })).toBe('TLSv1.2');
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    await expect(negotiated(old)).rejects.toThrow(/protocol version/);
  });

  test('uses a renewed pair without a restart, and keeps the one in use while the files do not fit', async () => {
    expect(await presented()).toBe('first');
    writeFileSync(certFile, 'half a certificate');
    await until(() => gateway.output().includes('TLS_CERT_FILE does not hold a certificate'));
    expect(await presented()).toBe('first');
    issueCertificate('second', { certFile, keyFile });
    await until(async () => (await presented()) === 'second');
  });
});

test.each([
  ['TLS', 'has sent a part of its handshake', '\x16\x03\x01\x02\x00\x01'],
  ['TCP', 'has sent a part of a request', 'POST /graphql HTTP/1.1\r\nHost: x\r\n'],
])('over %s, a gateway that is told to end does not wait for a client that %s', async (transport, _, beginning) => {
  const files = transport === 'TLS' ? { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile } : {};
  const stopping = await startTestGateway({ ...files, DRAIN_TIMEOUT_MS: '1000' });
  const socket = connectPlain(stopping.gateway.port, '127.0.0.1').on('error', () => {});
  const closed = new Promise((resolve) => socket.resume().once('close', resolve));
  await once(socket, 'connect');
  socket.write(beginning, 'latin1');
  const stopped = stopping.stop().then(() => 'stopped');
  try {
    expect(await Promise.race([stopped, delay(10_000, 'still waiting', { ref: false })])).toBe('stopped');
    await closed;
  } finally {
    socket.destroy();
    await stopped;
  }
});

test('over TLS, a gateway that is told to end does not wait for a client that sends nothing', async () => {
  const files = { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile };
  const stopping = await startTestGateway({ ...files, DRAIN_TIMEOUT_MS: '30000' });
  const socket = connect({ port: stopping.gateway.port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const startedAt = performance.now();
  await Promise.all([stopping.stop(), once(socket, 'close')]);
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});

describe('a client that sends slowly on purpose', () => {
  const timeouts = { headersTimeout: 100, requestTimeout: 200, connectionsCheckingInterval: 50 };
  const plain = {
    host: '127.0.0.1',
    port: 0,
    log: recordedLog().log,
    routes: { '/': () => {} },
  };

  test.each([
    ['its headers', 'POST / HTTP/1.1\r\nHost: x\r\nX-Slow: '],
    ['its body', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nx'],
  ])('is answered 408 and cut off when it never ends %s', async (_, beginning) => {
    const http = new HttpServer({ ...plain, timeouts });
    await http.listen('PORT');
    const socket = connectPlain(http.port, '127.0.0.1');
    socket.write(beginning);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 408 /);
    await http.stop();
  });

  test('is cut off when it never begins its TLS handshake', async () => {
    const material = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
    const http = new HttpServer({ ...plain, tls: material, timeouts });
    await http.listen('PORT');
    const socket = connectPlain(http.port, '127.0.0.1').on('error', () => {});
    await once(socket.resume(), 'close');
    await http.stop();
  });

  test('has 20 seconds for its headers and a minute for all of it', () => {
    const { server } = new HttpServer(plain);
    expect([server.headersTimeout, server.requestTimeout]).toEqual([20_000, 60_000]);
  });
});
