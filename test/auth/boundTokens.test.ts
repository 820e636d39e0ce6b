import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:https';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WebSocket } from 'ws';
import type { Authenticator } from '../../src/auth/Authenticator.js';
import { startTrustedProvider } from '../support/authenticated.js';
import { makeAuthority } from '../support/certificate.js';
import { certificateFor, startCertificateListener } from '../support/certificateListener.js';
import { startTestGateway } from '../support/gateway.js';
import { type IdentityProvider, startIdentityProvider } from '../support/identityProvider.js';
import { bearer, jwtAuthenticator, refusalOf } from '../support/jwtAuthenticator.js';
import { rawSocket } from '../support/rawSocket.js';

const own = certificateFor('client');
const foreign = certificateFor('another-client');
const bound = { cnf: { 'x5t#S256': own.thumbprint }, scope: 'taxpayers:read' };
const withoutCertificate = 'The access token is bound to a client certificate, and this connection presents none';

describe('A token that is bound to a certificate', () => {
  let provider: IdentityProvider;
  let authenticator: Authenticator;
  let listener: Awaited<ReturnType<typeof startCertificateListener>>;
  const who: typeof listener.who = (...call) => listener.who(...call);

  beforeAll(async () => {
    provider = await startIdentityProvider({ keys: ['ES256'] });
    authenticator = jwtAuthenticator([provider]);
    listener = await startCertificateListener(authenticator);
  });
  afterAll(async () => {
    await listener.stop();
    await provider.stop();
  });

  it('passes where the client presents that certificate, and nowhere else', async () => {
    const token = await provider.token(bound);
    const another = 'The access token is bound to another client certificate than the one presented';
    // The answer of one connection must not be remembered for the next one, in either order.
    for (let round = 0; round < 2; round += 1) {
      expect(await who(token, undefined)).toBe(withoutCertificate);
      expect(await who(token, foreign)).toBe(another);
      expect(await who(token, own)).toBe('ada');
    }
  });

  it('passes on a connection that was resumed', async () => {
    const agent = new Agent({ keepAlive: false, maxCachedSessions: 10 });
    const token = await provider.token(bound);
    let resumed = 0;
    listener.server.on('secureConnection', (socket: TLSSocket) => {
      resumed += socket.isSessionReused() ? 1 : 0;
    });
    for (let call = 0; call < 3; call += 1) expect(await who(token, own, agent)).toBe('ada');
    expect(resumed).toBeGreaterThan(0);
    agent.destroy();
  });

  it('is verified once for connections that bring it at the same time, and each is judged by itself', async () => {
    const token = await provider.token({ ...bound, jti: 'at once' });
    const answers = await Promise.all([who(token, own), who(token, undefined), who(token, own), who(token, foreign)]);
    expect(answers).toEqual(['ada', withoutCertificate, 'ada', expect.stringContaining('another client certificate')]);
  });

  it('is refused without TLS, on every transport', async () => {
    const trusted = await startTrustedProvider();
    const gateway = await startTestGateway(trusted.env);
    const headers = { authorization: bearer(await trusted.token(bound)) };
    const { status, errors } = await gateway.query('{ __typename }', {}, headers);
    expect({ status, message: errors?.[0]?.message }).toEqual({ status: 401, message: withoutCertificate });
    const stream = await fetch(`${gateway.origin}/graphql/stream`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ query: '{ __typename }' }),
    });
    expect(await stream.text()).toContain(withoutCertificate);
    const socket = rawSocket(gateway.origin);
    await socket.opened;
    socket.send({ type: 'connection_init', payload: headers });
    expect(await socket.closed).toEqual({ code: 4401, reason: withoutCertificate });
    expect(gateway.logs.join()).not.toContain(own.thumbprint);
    await gateway.stop();
    await trusted.stop();
  });

  it('passes through a gateway that asks for certificates, by HTTP and WebSocket, from the client that has it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'bound-tokens-'));
    const authority = makeAuthority(directory, 'clients');
    const [holder, thief, served] = ['holder', 'thief', 'gateway'].map((name) => {
      const { certFile, keyFile } = authority.issue(name);
      return { certFile, keyFile, cert: readFileSync(certFile), key: readFileSync(keyFile) };
    });
    const trusted = await startTrustedProvider();
    const gateway = await startTestGateway({
      ...trusted.env,
      TLS_CERT_FILE: served?.certFile,
      TLS_KEY_FILE: served?.keyFile,
      TLS_CLIENT_CA_FILE: authority.certFile,
    });
    const thumbprint = createHash('sha256')
      .update(new X509Certificate(holder?.cert ?? '').raw)
      .digest('base64url');
    const authorization = bearer(await trusted.token({ cnf: { 'x5t#S256': thumbprint } }));
    const at = `127.0.0.1:${gateway.gateway.port}/graphql`;
    for (const [client, status, closed] of [
      [thief, 401, 4401],
      [holder, 200, undefined],
    ] as const) {
      const tls = { cert: client?.cert, key: client?.key, rejectUnauthorized: false };
      const headers = { authorization, 'apollo-require-preflight': 'true' };
      const answered = new Promise<number | undefined>((resolve, reject) => {
        const asked = get(`https://${at}?query={__typename}`, { ...tls, headers, agent: false }, (response) => {
          resolve(response.resume().statusCode);
        });
        asked.on('error', reject);
      });
      expect(await answered).toBe(status);
      const socket = new WebSocket(`wss://${at}`, 'graphql-transport-ws', tls);
      await once(socket, 'open');
      const acknowledged = once(socket, 'message').then(() => undefined);
      const refused = once(socket, 'close').then(([code]) => code);
      socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
      expect(await Promise.race([acknowledged, refused])).toBe(closed);
      socket.terminate();
    }
    await gateway.stop();
    await trusted.stop();
    rmSync(directory, { recursive: true });
  });

  it.each<[string, unknown, RegExp]>([
    [
      'a DPoP key',
      { jkt: 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs' },
      /bound to a DPoP key \(RFC 9449\), which is not supp/,
    ],
    ['a DPoP key and a certificate', { ...bound.cnf, jkt: 'x' }, /DPoP/],
    ['a key in the token', { jwk: { kty: 'EC' } }, /in a way that is not supported here \(cnf\)$/],
    ['a key by its name', { kid: 'x' }, /not supported/],
    ['a certificate by its SHA-1', { x5t: 'x' }, /not supported/],
    ['a thumbprint that is no text', { 'x5t#S256': 7 }, /not supported/],
    ['nothing', {}, /not supported/],
    ['null', null, /not supported/],
    ['a text', own.thumbprint, /not supported/],
    ['a list', [bound.cnf], /not supported/],
  ])('by %s is refused in words', async (_, cnf, message) => {
    expect(await refusalOf(authenticator, bearer(await provider.token({ cnf })))).toMatch(message);
    expect(await who(await provider.token({ cnf }), own)).toMatch(message);
  });

  it('by a DPoP key is refused in the same words when its scheme says so', async () => {
    const token = await provider.token({ cnf: { jkt: 'x' } });
    const message = await refusalOf(authenticator, bearer(token));
    for (const scheme of ['DPoP', 'dpop']) expect(await refusalOf(authenticator, `${scheme} ${token}`)).toBe(message);
  });

  it('is refused on a connection that is gone', async () => {
    const token = await provider.token(bound);
    for (const connection of [new Socket(), new TLSSocket(new Socket())]) {
      await expect((async () => authenticator.authenticate(bearer(token), connection))()).rejects.toMatchObject({
        code: 'UNAUTHENTICATED',
      });
    }
  });
});
