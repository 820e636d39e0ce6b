import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Authenticator } from '../../src/auth/Authenticator.js';
import type { Caller } from '../../src/auth/caller.js';
import { loadConfig } from '../../src/config/config.js';
import { type IdentityProvider, startIdentityProvider } from '../support/identityProvider.js';
import { bearer, jwtAuthenticator, refusalOf } from '../support/jwtAuthenticator.js';
import { real, replacePlatform, restorePlatform } from '../support/platform.js';
import { until } from '../support/until.js';

const seconds = 1000;

describe('Authenticator', () => {
  let provider: IdentityProvider;
  let clock: number | undefined;
  let authenticator: Authenticator;

  beforeAll(async () => {
    provider = await startIdentityProvider({ keys: ['ES256'] });
  });

  afterAll(() => provider.stop());

  beforeEach(() => {
    clock = undefined;
    replacePlatform(() => ({ now, monotonicNow: now }));
    authenticator = jwtAuthenticator([provider]);
  });

  afterEach(restorePlatform);

  const now = () => clock ?? real.now();
  const nowSeconds = () => Math.floor(Date.now() / seconds);
  const authenticate = async (authorization?: string): Promise<Caller> => authenticator.authenticate(authorization);

  describe('memory', () => {
    it('answers at once, with the same caller, for a token it has verified', async () => {
      const token = await provider.token();
      const first = authenticator.authenticate(bearer(token));
      const second = authenticator.authenticate(bearer(token));
      expect(first).toBeInstanceOf(Promise);
      expect(second).toBeInstanceOf(Promise);
      const caller = await first;
      expect(await second).toBe(caller); // one verification makes one caller
      expect(authenticator.authenticate(bearer(token))).toBe(caller);
    });

    it('holds a token once, however its header is written', async () => {
      const token = await provider.token();
      const caller = await authenticate(bearer(token));
      for (const header of [`bearer ${token}`, `bEaReR   ${token}`, `Bearer  ${token}`]) {
        expect(authenticator.authenticate(header)).toBe(caller);
      }
    });

    it.each([' ', '  ', '\t'])('refuses a remembered token with %j after it, or a tab before', async (end) => {
      const token = await provider.token();
      await authenticate(bearer(token));
      expect(await refusalOf(authenticator, `Bearer ${token}${end}`)).toMatch(/the word Bearer and one token/);
      expect(await refusalOf(authenticator, `Bearer\t${token}`)).toMatch(/the word Bearer and one token/);
    });

    it('holds the last fifty tokens of one caller, whatever others hold', async () => {
      const tokensOf = (sub: string, count: number) =>
        Promise.all(Array.from({ length: count }, (_, n) => provider.token({ sub, jti: `${n}` })));
      const isRemembered = (token: string) => !(authenticator.authenticate(bearer(token)) instanceof Promise);
      const [honest = ''] = await tokensOf('honest', 1);
      await authenticate(bearer(honest));
      const many = await tokensOf('many', 60);
      for (const token of many) await authenticate(bearer(token));
      // The latest first: asking for a token that is not remembered adds it.
      const remembered = many
        .toReversed()
        .map((token) => isRemembered(token))
        .toReversed();
      expect(remembered).toEqual([...Array(10).fill(false), ...Array(50).fill(true)]);
      expect(isRemembered(honest)).toBe(true);
    });

    it('keeps the token of a caller however many tokens another one uses', async () => {
      const honest = await provider.token({ sub: 'honest' });
      const caller = await authenticate(bearer(honest));
      for (let n = 0; n < 10_100; n += 100) {
        const tokens = Array.from({ length: 100 }, (_, i) => provider.token({ sub: 'many', jti: `${n + i}` }));
        await Promise.all(tokens.map(async (token) => authenticate(bearer(await token))));
      }
      expect(authenticator.authenticate(bearer(honest))).toBe(caller);
    }, 120_000);

    it('verifies again after five minutes, and refuses after the end of the token', async () => {
      const start = nowSeconds() * seconds;
      clock = start;
      const token = await provider.token({ iat: undefined, exp: start / seconds + 400 });
      const caller = await authenticate(bearer(token));
      clock = start + 300 * seconds - 1;
      expect(authenticator.authenticate(bearer(token))).toBe(caller);
      clock += 1;
      const again = authenticator.authenticate(bearer(token));
      expect(again).toBeInstanceOf(Promise);
      expect(await again).toEqual(caller);
      clock = start + 400 * seconds - 1;
      expect(authenticator.authenticate(bearer(token))).not.toBeInstanceOf(Promise);
      clock = start + 405 * seconds;
      expect(await refusalOf(authenticator, bearer(token))).toMatch(/expired/);
    });

    it('refuses a token again for a second without another look, and pushes no good token out', async () => {
      clock = Date.now();
      const good = await provider.token();
      const caller = await authenticate(bearer(good));
      const forged = bearer(`${await provider.token({ jti: 'forged' })}x`);
      const refused = () => authenticator.authenticate(forged);
      await expect(refused()).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
      expect(refused).toThrow('The access token');
      for (let n = 0; n < 3000; n += 1) await refusalOf(authenticator, `Bearer made.up.${n}`);
      expect(authenticator.authenticate(bearer(good))).toBe(caller);
      await refusalOf(authenticator, forged);
      clock += 1 * seconds;
      const looking = refused();
      expect(looking).toBeInstanceOf(Promise);
      await expect(looking).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    });

    it('respects the beginning of a token when the clock is set back', async () => {
      const nbf = nowSeconds();
      const token = await provider.token({ nbf, iat: undefined });
      await authenticate(bearer(token));
      clock = (nbf - 6) * seconds;
      expect(await refusalOf(authenticator, bearer(token))).toMatch(/not valid yet/);
    });

    it('takes a token from its first moment on, each time', async () => {
      clock = nowSeconds() * seconds;
      const nbf = clock / seconds + 5;
      const token = bearer(await provider.token({ nbf, iat: undefined }));
      const caller = await authenticate(token);
      expect(authenticator.authenticate(token)).toBe(caller);
      clock -= 1;
      expect(await refusalOf(authenticator, token)).toBe('The access token is not valid yet (nbf, iat)');
    });

    it('looks again at a refused token when the clock is set back', async () => {
      clock = nowSeconds() * seconds;
      const early = bearer(
        await provider.token({ nbf: clock / seconds - 100, iat: undefined, exp: clock / seconds + 60 }),
      );
      clock += 100 * seconds;
      expect(await refusalOf(authenticator, early)).toBe('The access token has expired');
      clock -= 100 * seconds;
      expect((await authenticate(early)).subject).toBe('ada');
    });

    it('forgets what an issuer signed once its keys change, and nothing of another issuer', async () => {
      const [changing, steady] = await Promise.all([
        startIdentityProvider(),
        startIdentityProvider({ keys: ['ES256'] }),
      ]);
      authenticator = jwtAuthenticator([changing, steady]);
      const [old, kept] = await Promise.all([changing.token(), steady.token()]);
      await authenticate(bearer(old));
      await authenticate(bearer(kept));
      changing.rotateKey();
      expect((await authenticate(bearer(await changing.token()))).subject).toBe('ada');
      await refusalOf(authenticator, bearer(old));
      expect(authenticator.authenticate(bearer(kept))).not.toBeInstanceOf(Promise);
      await Promise.all([changing.stop(), steady.stop()]);
    });
  });

  describe('key set', () => {
    it('is asked once more for a hundred tokens of unknown kids', async () => {
      await authenticate(bearer(await provider.token()));
      const asked = provider.counts.jwks;
      const tokens = Array.from({ length: 100 }, (_, n) => provider.token({}, { alg: 'ES256', kid: `made-up-${n}` }));
      await Promise.all(tokens.map(async (token) => refusalOf(authenticator, bearer(await token))));
      expect(provider.counts.jwks).toBe(asked + 1);
    });

    it('may change its key under the same kid, or under none', async () => {
      for (const kid of ['same', null] as const) {
        const changing = await startIdentityProvider({ keys: ['ES256'] });
        authenticator = jwtAuthenticator([changing]);
        for (const round of [1, 2]) {
          if (round === 2) changing.rotateKey('ES256');
          const { keys } = JSON.parse(await (await fetch(changing.jwksUrl)).text());
          const { kid: _, ...key } = keys[0];
          changing.publish({ keys: [kid === null ? key : { ...key, kid }] });
          expect((await authenticate(bearer(await changing.token({ sub: `r${round}` }, { kid })))).subject).toBe(
            `r${round}`,
          );
          changing.publish(undefined);
        }
        await changing.stop();
      }
    });

    it('was never read: the caller is told to come back, and then gets in', async () => {
      const late = await startIdentityProvider({ keys: ['ES256'] });
      authenticator = jwtAuthenticator([late]);
      late.outage(true);
      clock = Date.now();
      const token = await late.token();
      const unavailable = {
        code: 'AUTH_UNAVAILABLE',
        message: 'The keys of the identity provider cannot be read at the moment',
        reason: 'key set: ECONNRESET',
        retryable: true,
        retryAfterSeconds: expect.any(Number),
        extensions: { http: { status: 503 } },
      };
      await expect(authenticate(bearer(token))).rejects.toMatchObject(unavailable);
      const asked = late.counts.jwks;
      const again = authenticator.authenticate(bearer(token)); // not thrown at once, as what is remembered as refused
      expect(again).toBeInstanceOf(Promise);
      await expect(again).rejects.toMatchObject(unavailable);
      expect(late.counts.jwks).toBe(asked);
      await refusalOf(authenticator, bearer(await late.token({ iss: 'https://other.example/' })));
      late.outage(false);
      clock += 2 * seconds;
      expect((await authenticate(bearer(token))).subject).toBe('ada');
      await late.stop();
    });

    it('serves new and old tokens through an outage', async () => {
      const failing = await startIdentityProvider({ keys: ['ES256'] });
      authenticator = jwtAuthenticator([failing]);
      const old = await failing.token();
      await authenticate(bearer(old));
      failing.outage(true);
      expect((await authenticate(bearer(old))).subject).toBe('ada');
      expect((await authenticate(bearer(await failing.token({ sub: 'new' })))).subject).toBe('new');
      await refusalOf(authenticator, bearer(await failing.token({}, { kid: 'unknown' })));
      expect((await authenticate(bearer(await failing.token({ sub: 'newer' })))).subject).toBe('newer');
      await failing.stop();
    });

    it('belongs to its issuer alone', async () => {
      const other = await startIdentityProvider();
      authenticator = jwtAuthenticator([provider, other]);
      const one = await authenticate(bearer(await provider.token()));
      const two = await authenticate(bearer(await other.token()));
      expect(one.subject).toBe(two.subject);
      expect(one.key).not.toBe(two.key);
      expect((await authenticate(bearer(await provider.token({ jti: '2' })))).key).toBe(one.key);
      await refusalOf(authenticator, bearer(await provider.token({ iss: other.issuer })));
      await refusalOf(authenticator, bearer(await other.token({ iss: provider.issuer })));
      await other.stop();
    });

    it.each(['issuer and audience', 'audience alone'])('has the audiences that name it: %s', async (form) => {
      const other = await startIdentityProvider();
      const isPaired = form !== 'audience alone';
      const AUTH_AUDIENCE = isPaired ? `${provider.issuer} ours,${other.issuer} theirs , both` : 'ours,theirs,both';
      authenticator = jwtAuthenticator([provider, other], { env: { AUTH_AUDIENCE } });
      for (const [signer, foreign] of [
        [provider, 'theirs'],
        [other, 'ours'],
      ] as const) {
        for (const aud of [foreign === 'ours' ? 'theirs' : 'ours', 'both', ['x', 'both']]) {
          expect((await authenticate(bearer(await signer.token({ aud })))).subject).toBe('ada');
        }
        const crossed = bearer(await signer.token({ aud: foreign }));
        if (isPaired) expect(await refusalOf(authenticator, crossed)).toMatch(/another audience/);
        else expect((await authenticate(crossed)).subject).toBe('ada');
      }
      await other.stop();
    });

    it('counts for a bounded time through an outage, also for remembered tokens, and again after it', async () => {
      const failing = await startIdentityProvider({ keys: ['ES256'] });
      clock = Date.now();
      authenticator = jwtAuthenticator([failing], { env: { AUTH_KEYS_MAX_AGE_SECONDS: '60' } });
      const token = bearer(await failing.token({}, { expiresIn: 3600 }));
      const caller = await authenticate(token);
      failing.outage(true);
      clock += 60 * seconds - 1;
      expect(authenticator.authenticate(token)).toBe(caller);
      expect(authenticator.reasonNotReady()).toBeUndefined();
      clock += 1;
      await expect(authenticate(token)).rejects.toMatchObject({ code: 'AUTH_UNAVAILABLE', retryable: true });
      expect(authenticator.reasonNotReady()).toBe('there is no usable key of the identity provider');
      failing.outage(false);
      clock += 2 * seconds;
      expect((await authenticate(token)).subject).toBe('ada');
      expect(authenticator.reasonNotReady()).toBeUndefined();
      await failing.stop();
    });

    it('tells when keys were read, and reads none once it is stopped', async () => {
      const read: string[] = [];
      const onKeySetRead = (issuer: string) => read.push(issuer);
      const stopped = jwtAuthenticator([provider], { onKeySetRead });
      stopped.start();
      stopped.stop();
      const started = jwtAuthenticator([provider], { onKeySetRead });
      started.start();
      await until(() => read.length > 0);
      started.stop();
      expect(read).toEqual([provider.issuer]);
      expect(started.keySets.get(provider.issuer)?.keysAgeMs).toBeGreaterThanOrEqual(0);
      expect(stopped.keySets.get(provider.issuer)?.keysAgeMs).toBeUndefined();
    });

    it('is ready where no provider is asked', () => {
      const { auth } = loadConfig({ AUTH_MODE: 'disabled', NODE_ENV: 'development' });
      expect(new Authenticator({ ...auth, mode: 'disabled' }).reasonNotReady()).toBeUndefined();
    });

    it('is read at the start, and a failure reported by issuer', async () => {
      const failing = await startIdentityProvider();
      failing.outage(true);
      const reported = await new Promise((resolve) => {
        authenticator = jwtAuthenticator([provider, failing], { onKeySetFailure: (...failure) => resolve(failure) });
        authenticator.start();
      });
      expect(reported).toEqual([failing.issuer, 'network', 'ECONNRESET']);
      while (authenticator.reasonNotReady()) await new Promise((resolve) => setTimeout(resolve, 5));
      expect(authenticator.keySets.get(provider.issuer)?.keysAgeMs).toBeGreaterThanOrEqual(0);
      authenticator.stop();
      await failing.stop();
    });
  });
});
