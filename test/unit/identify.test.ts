import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { router } from '../../src/auth/caller.js';
import { credentialsOf, credentialsOfSocket, identifier, RouterSecrets } from '../../src/auth/identify.js';
import { loadConfig } from '../../src/config/config.js';
import { Secret } from '../../src/config/secret.js';
import { createLogger } from '../../src/observability/log.js';
import { startIdentityProvider } from '../support/identityProvider.js';
import { bearer, jwtAuthenticator } from '../support/jwtAuthenticator.js';
import { until } from '../support/until.js';

describe('The secrets shared with the router', () => {
  const current = new Secret('the-current-router-secret');
  const previous = new Secret('the-previous-router-secret');
  const { federation } = loadConfig({});

  it.each<[string, string | undefined, Secret | undefined, Secret | undefined, boolean | undefined]>([
    ['accept the current secret', current.reveal(), current, undefined, true],
    ['accept the current secret during a rotation', current.reveal(), current, previous, true],
    ['accept the previous secret during a rotation', previous.reveal(), current, previous, true],
    ['refuse the previous secret after it', previous.reveal(), current, undefined, false],
    ['refuse the beginning of the secret', current.reveal().slice(0, -1), current, previous, false],
    ['refuse no header', undefined, current, previous, false],
    ['refuse an empty header', '', current, previous, false],
    ['refuse an empty header when only the previous one is set', '', undefined, previous, false],
    ['prove nothing when none is set', '', undefined, undefined, undefined],
    ['prove nothing by any header when none is set', 'undefined', undefined, undefined, undefined],
  ])('%s', (_, header, secret, previousSecret, expected) => {
    const secrets = new RouterSecrets({ ...federation, secret, previousSecret }, createLogger('error'));
    expect(secrets.accept(header)).toBe(expected);
  });

  it('accept the secret of a file from when it is written there, and nothing too short', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'router-secret-'));
    const secretFile = join(directory, 'secret');
    writeFileSync(secretFile, current.reveal());
    const lines: string[] = [];
    const log = createLogger('info', { write: (line: string) => lines.push(line) });
    const secrets = new RouterSecrets({ ...federation, secret: current, secretFile }, log);
    try {
      expect(secrets.accept(current.reveal())).toBe(true);
      writeFileSync(secretFile, 'too-short\n');
      await until(() => lines.some((line) => line.includes('too short')));
      expect(secrets.accept(current.reveal())).toBe(true);
      writeFileSync(secretFile, `${previous.reveal()}\n`);
      await until(() => secrets.accept(previous.reveal()) === true);
      expect(secrets.accept(current.reveal())).toBe(false);
      expect(lines.map((line) => JSON.parse(line))).toMatchObject([
        {
          which: 'current',
          msg: 'the secret shared with the router is too short in its file, or has a control character: the one in use stays',
        },
        { which: 'current', msg: 'the secret shared with the router was rotated' },
      ]);
    } finally {
      secrets.stop();
      rmSync(directory, { recursive: true });
    }
  });

  it('refuse the previous secret once its file is emptied, also after a restart, and still ask for one', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'router-secret-'));
    const file = join(directory, 'previous');
    writeFileSync(file, previous.reveal());
    const lines: string[] = [];
    const log = createLogger('info', { write: (line: string) => lines.push(line) });
    const start = () => new RouterSecrets(loadConfig({ FEDERATION_SHARED_SECRET_PREVIOUS_FILE: file }).federation, log);
    const running = start();
    let restarted: RouterSecrets | undefined;
    try {
      expect(running.accept(previous.reveal())).toBe(true);
      writeFileSync(file, '\n');
      await until(() => running.accept(previous.reveal()) === false);
      restarted = start();
      for (const secrets of [running, restarted]) expect(secrets.accept(undefined)).toBe(false);
      expect(lines.map((line) => JSON.parse(line))).toMatchObject([
        { level: 'info', which: 'previous', msg: 'the secret shared with the router was withdrawn' },
      ]);
      writeFileSync(file, current.reveal());
      await until(() => running.accept(current.reveal()) === true && restarted?.accept(current.reveal()) === true);
    } finally {
      running.stop();
      restarted?.stop();
      rmSync(directory, { recursive: true });
    }
  });
});

describe('What a caller shows', () => {
  const requestWith = (headers: Record<string, unknown>, address?: string) =>
    ({
      headers,
      socket: { remoteAddress: '192.0.2.1' },
      ...(address !== undefined && { peer: { address, certificate: undefined } }),
    }) as unknown as IncomingMessage;
  const headers = { authorization: 'Bearer header', 'x-gateway-router-secret': 'of-the-header' };

  it('is in the headers of a request; its address is what trusted proxies say', () => {
    expect(credentialsOf(requestWith(headers))).toMatchObject({
      authorization: 'Bearer header',
      routerSecret: 'of-the-header',
      remoteAddress: '192.0.2.1',
    });
    expect(credentialsOf(requestWith(headers, '203.0.113.9')).remoteAddress).toBe('203.0.113.9');
    expect(credentialsOf(requestWith({})).routerSecret).toBeUndefined();
  });

  it.each<[string, Record<string, unknown> | undefined, string, string]>([
    ['no parameters', undefined, 'Bearer header', 'of-the-header'],
    [
      'parameters that are null',
      { authorization: null, 'x-gateway-router-secret': null },
      'Bearer header',
      'of-the-header',
    ],
    ['names in any case', { Authorization: 'Bearer own', 'X-Gateway-Router-Secret': 'own' }, 'Bearer own', 'own'],
    ['parameters that are no text', { authorization: 7, 'x-gateway-router-secret': {} }, '', ''],
  ])('is in the parameters of a socket, or its headers: %s', (_, parameters, authorization, routerSecret) => {
    expect(credentialsOfSocket(parameters, requestWith(headers))).toMatchObject({ authorization, routerSecret });
  });

  it('makes a router of who shows its secret and no token, and nothing else', async () => {
    const provider = await startIdentityProvider({ keys: ['ES256'] });
    const { federation } = loadConfig({});
    const secret = new Secret('the-current-router-secret');
    const secrets = new RouterSecrets({ ...federation, secret }, createLogger('error'));
    const identify = identifier(jwtAuthenticator([provider]), secrets);
    const shown = credentialsOf(requestWith({ 'x-gateway-router-secret': secret.reveal() }));
    expect(identify(shown)).toMatchObject({ caller: router, fromRouter: true, remoteAddress: '192.0.2.1' });
    expect(() => identify({ ...shown, routerSecret: 'another' })).toThrow('An Authorization header');
    expect(() => identify({ ...shown, authorization: 'Basic YTpi' })).toThrow('the word Bearer and one token');
    const token = bearer(await provider.token());
    expect(await identify({ ...shown, authorization: token })).toMatchObject({
      caller: { kind: 'bearer' },
      fromRouter: true,
    });
    await provider.stop();
  });
});
