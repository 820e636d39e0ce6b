import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { KeySet, type KeySetOptions } from '../../src/auth/KeySet.js';
import type { ReadFault } from '../../src/auth/readJson.js';
import { signatureAlgorithms } from '../../src/auth/readKeySet.js';
import { type IdentityProvider, makeKey, publicJwk, startIdentityProvider } from '../support/identityProvider.js';
import { replacePlatform, restorePlatform } from '../support/platform.js';

const seconds = 1000;
const allButDate = [
  ...(['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'clearImmediate'] as const),
  ...(['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] as const),
];

describe('KeySet', () => {
  let provider: IdentityProvider;
  let now = 0;
  let faults: ReadFault[] = [];
  let started: KeySet[] = [];

  beforeEach(async () => {
    provider = await startIdentityProvider({ keys: ['ES256'] });
    now = Date.parse('2030-01-01T00:00:00Z');
    replacePlatform(() => ({ monotonicNow: () => now, random: () => 0 }));
    faults = [];
    started = [];
  });

  afterEach(async () => {
    restorePlatform();
    for (const keySet of started) keySet.stop();
    await provider.stop();
  });

  function keySetOf(options: Partial<KeySetOptions> = {}): KeySet {
    const keySet = new KeySet({
      issuer: provider.issuer,
      jwksUrl: provider.jwksUrl,
      onFailure: (reason) => faults.push(reason),
      ...options,
    });
    started.push(keySet);
    return keySet;
  }

  const header = (kid?: string, alg = 'ES256') => ({ alg, ...(kid !== undefined && { kid }) });

  it('reads the set once for requests that come at the same time, and knows when', async () => {
    const keySet = keySetOf();
    expect(keySet.keysAgeMs).toBeUndefined();
    const found = await Promise.all(Array.from({ length: 50 }, () => keySet.keysFor(header())));
    expect(found.every(({ keys }) => keys.length === 1)).toBe(true);
    expect(provider.counts.jwks).toBe(1);
    now += 5 * seconds;
    expect(keySet.keysAgeMs).toBe(5 * seconds);
  });

  it('tells an unknown kid from an unreachable set', async () => {
    const keySet = keySetOf();
    expect((await keySet.keysFor(header('unknown'))).keys).toEqual([]);
    provider.outage(true);
    await expect(keySetOf().keysFor(header('unknown'))).rejects.toMatchObject({ code: 'AUTH_UNAVAILABLE' });
  });

  it('looks again for an unknown kid once in ten seconds, however many ask', async () => {
    const keySet = keySetOf();
    const { version } = await keySet.keysFor(header());
    expect(await Promise.all(Array.from({ length: 100 }, () => keySet.lookAgain(version)))).not.toContain(true);
    now += 9 * seconds;
    expect(await keySet.lookAgain(version)).toBe(false);
    expect(provider.counts.jwks).toBe(2);
    now += 1 * seconds;
    await keySet.lookAgain(version);
    expect(provider.counts.jwks).toBe(3);
  });

  it('finds a key that was published since, for all concurrent callers', async () => {
    const keySet = keySetOf();
    const { version } = await keySet.keysFor(header());
    const kid = provider.addKey('ES256');
    expect(await Promise.all(Array.from({ length: 10 }, () => keySet.lookAgain(version)))).not.toContain(false);
    expect((await keySet.keysFor(header(kid))).keys).toHaveLength(1);
    expect(provider.counts.jwks).toBe(2);
  });

  it('does not ask the provider for a version that is already newer', async () => {
    const keySet = keySetOf();
    const { version } = await keySet.keysFor(header());
    expect(await keySet.lookAgain(version - 1)).toBe(true);
    expect(provider.counts.jwks).toBe(1);
  });

  it('counts a new version when the keys change, not when only their order does', async () => {
    const [one, two, three] = ['ES256', 'ES256', 'ES256'].map((alg) => publicJwk(makeKey(alg)));
    const keySet = keySetOf();
    const versions: number[] = [];
    for (const keys of [[one, two], [two, one], [two], [two, three]]) {
      provider.publish({ keys });
      now += 10 * seconds;
      await keySet.keysFor(header());
      await keySet.lookAgain(keySet.version);
      versions.push(keySet.version);
    }
    expect(versions).toEqual([1, 1, 2, 3]);
  });

  it('asks a provider that is down after 1, 2, 4, 8 and 10 seconds, and says when to come back', async () => {
    provider.outage(true);
    const keySet = keySetOf();
    for (const [asked, wait] of [1, 2, 4, 8, 10, 10].entries()) {
      const refused = { code: 'AUTH_UNAVAILABLE', retryAfterSeconds: wait, extensions: { http: { status: 503 } } };
      await expect(keySet.keysFor(header())).rejects.toMatchObject(refused);
      now += wait * seconds - 1;
      await expect(keySet.keysFor(header())).rejects.toMatchObject({ ...refused, retryAfterSeconds: 1 });
      expect(provider.counts.jwks).toBe(asked + 1);
      now += 1;
    }
    provider.outage(false);
    expect((await keySet.keysFor(header())).keys).toHaveLength(1);
  });

  it.each([
    ['ahead', 3600 * seconds],
    ['back', -3600 * seconds],
  ])('tells its age, and how often to ask, by a clock that nobody can set %s', async (_, stepMs) => {
    jest.useFakeTimers({ doNotFake: allButDate });
    try {
      const keySet = new KeySet({ issuer: provider.issuer, jwksUrl: provider.jwksUrl });
      const { version } = await keySet.keysFor(header());
      await keySet.lookAgain(version);
      jest.setSystemTime(Date.now() + stepMs);
      expect(await keySet.lookAgain(version)).toBe(false);
      expect(provider.counts.jwks).toBe(2);
      expect(keySet.keysAgeMs).toBeGreaterThanOrEqual(0);
      expect(keySet.keysAgeMs).toBeLessThan(60 * seconds);
    } finally {
      jest.useRealTimers();
    }
  });

  it.each([
    ['drop', 'network'],
    ['error', 'status'],
    ['redirect', 'redirect'],
    ['huge', 'too-large'],
    ['garbage', 'not-a-key-set'],
    ['hang', 'timeout'],
    ['hang-in-body', 'timeout'],
  ] as const)('keeps the keys it has when the provider turns to %s', async (behaviour, reason) => {
    const keySet = keySetOf({ deadlineMs: 1500 });
    const { version } = await keySet.keysFor(header());
    provider.behave(behaviour);
    now += 86_400 * seconds - 1;
    expect(await keySet.lookAgain(version)).toBe(false);
    expect(faults).toEqual([reason]);
    expect((await keySet.keysFor(header())).keys).toHaveLength(1);
    expect(provider.counts.jwks).toBe(2);
  });

  it('uses keys that nobody confirms for a day, or as long as it is told, and then no more', async () => {
    for (const maxAgeMs of [undefined, 60 * seconds]) {
      const keySet = keySetOf(maxAgeMs === undefined ? {} : { maxAgeMs });
      await keySet.keysFor(header());
      provider.outage(true);
      now += (maxAgeMs ?? 86_400 * seconds) - 1;
      expect((await keySet.keysFor(header())).keys).toHaveLength(1);
      expect(keySet.usableForMs).toBe(1);
      now += 1;
      const refused = { code: 'AUTH_UNAVAILABLE', retryable: true, extensions: { http: { status: 503 } } };
      await expect(keySet.keysFor(header())).rejects.toMatchObject(refused);
      provider.outage(false);
      now += 2 * seconds;
      expect((await keySet.keysFor(header())).keys).toHaveLength(1);
    }
  });

  it('gives up a read at its deadline, whatever the garbage collector has taken by then', async () => {
    provider.behave('hang');
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const waiting = keySetOf({ deadlineMs: 300 }).keysFor(header());
    const collecting = setInterval(collect, 20);
    await expect(waiting).rejects.toMatchObject({ code: 'AUTH_UNAVAILABLE' });
    clearInterval(collecting);
    expect(faults).toEqual(['timeout']);
  });

  const rsa = publicJwk(makeKey('RS256'));
  const ec = publicJwk(makeKey('ES256'));
  const privateJwk = makeKey('RS256').privateKey.export({ format: 'jwk' });

  it.each<[string, unknown]>([
    ['a private key', privateJwk],
    ['a shared secret', { kty: 'oct', k: 'c2VjcmV0', kid: 'a', alg: 'HS256' }],
    ['a key for encryption', { ...rsa, use: 'enc' }],
    ['a key that may not verify', { ...rsa, key_ops: ['encrypt'] }],
    ['a key of another algorithm', { ...rsa, alg: 'RS512' }],
    ['a curve that is not accepted', publicJwk(makeKey('ES512'))],
    ['a point off the curve', { ...ec, x: ec['y'] }],
    ['a short RSA key', { ...rsa, n: Buffer.alloc(128, 0xff).toString('base64url') }],
    ['a kid that is no text', { ...rsa, kid: 7 }],
    ['no object', 'key'],
    ['null', null],
  ])('skips %s and keeps the good key beside it', async (_, member) => {
    const good = publicJwk(makeKey('ES384'));
    provider.publish({ keys: [member, good] });
    const keySet = keySetOf();
    expect((await keySet.keysFor(header(String(good['kid']), 'ES384'))).keys).toHaveLength(1);
    const found = await Promise.all(signatureAlgorithms.map((alg) => keySet.keysFor(header(undefined, alg))));
    expect(found.flatMap(({ keys }) => keys)).toHaveLength(1);
  });

  it.each<[string, unknown, string]>([
    ['an empty set', { keys: [] }, 'no-usable-key'],
    ['a set of unusable keys', { keys: [privateJwk] }, 'no-usable-key'],
    ['a list', [rsa], 'not-a-key-set'],
    ['keys that are no list', { keys: { 0: rsa, length: 1 } }, 'not-a-key-set'],
  ])('does not take %s for keys', async (_, set, reason) => {
    provider.publish(set);
    await expect(keySetOf().keysFor(header())).rejects.toMatchObject({ code: 'AUTH_UNAVAILABLE' });
    expect(faults).toEqual([reason]);
  });

  it('accepts a key with other members, words in key_ops and no kid or alg', async () => {
    const { kid: _, alg: __, ...key } = rsa;
    provider.publish({
      keys: [{ ...key, key_ops: ['verify', 'other'], x5t: 'x', ['__proto__']: { d: 'x' } }],
      more: true,
    });
    expect((await keySetOf().keysFor(header(undefined, 'RS256'))).keys).toHaveLength(1);
  });

  it('tries a bounded number of keys for a token without kid', async () => {
    provider.publish({ keys: Array.from({ length: 20 }, () => publicJwk(makeKey('ES256'))) });
    expect((await keySetOf().keysFor(header(undefined, 'ES256'))).keys).toHaveLength(8);
  });

  it('reads again in the background until it is stopped', async () => {
    const keySet = keySetOf({ refreshMs: 20 });
    keySet.start();
    await until(() => provider.counts.jwks >= 3);
    expect(keySet.version).toBe(1);
    provider.rotateKey('ES256');
    await until(() => keySet.version === 2);
    keySet.stop();
    const asked = provider.counts.jwks;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(provider.counts.jwks).toBe(asked);
    expect((await keySet.keysFor(header(undefined, 'ES256'))).keys).toHaveLength(1);
  });

  it('reads again before its keys are too old', async () => {
    keySetOf({ maxAgeMs: 40 }).start();
    await until(() => provider.counts.jwks >= 3);
  });

  it('recovers in the background from a provider that was down at the start', async () => {
    provider.outage(true);
    const keySet = keySetOf();
    keySet.start();
    await until(() => faults.length === 1);
    expect(faults).toEqual(['network']);
    provider.outage(false);
    await until(() => keySet.version === 1);
  });

  it('reports no failure for a read that stopping cut off', async () => {
    provider.hang(true);
    const keySet = keySetOf();
    keySet.start();
    const waiting = keySet.keysFor(header());
    keySet.stop();
    await expect(waiting).rejects.toMatchObject({ code: 'AUTH_UNAVAILABLE' });
    expect(faults).toEqual([]);
  });
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}
