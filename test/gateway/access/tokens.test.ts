import { jest } from '@jest/globals';
import { IssuerKeys } from '../../../src/auth/IssuerKeys.js';
import { type Environment, linesWith, startTestGateway, type TestGateway } from '../../support/gateway.js';
import {
  type IdentityProvider,
  makeKey,
  publicJwk,
  startIdentityProvider,
  strangeKey,
} from '../../support/identityProvider.js';
import { times } from '../../support/times.js';
import { until } from '../../support/until.js';

// `hostile/attacks` has the tokens that must never let anybody in. Here: which do, how each refusal reads, and for how long.

const planted = 'planted-claim';

const nowSeconds = () => Math.floor(Date.now() / 1000);

const providerWith = (keys: readonly string[] = ['ES256']) => startIdentityProvider({ keys });

function gatewayFor(providers: readonly IdentityProvider[], env: Environment = {}) {
  return startTestGateway({
    AUTH_MODE: 'jwt',
    AUTH_ISSUER: providers.map(({ issuer }) => issuer).join(),
    AUTH_JWKS_URL: providers.map(({ jwksUrl }) => jwksUrl).join(),
    AUTH_AUDIENCE: 'other-audience,taxpayer-gateway',
    ...env,
  });
}

/** `accepted`, or the code and the message of the refusal, for an Authorization header. */
async function outcomeOf(authorization: string | undefined, of = gateway) {
  const { status, errors, headers } = await of.query('{ __typename }', {}, { ...(authorization && { authorization }) });
  const [error] = errors ?? [];
  if (error === undefined) return 'accepted';
  const challenge = authorization ? 'Bearer error="invalid_token"' : 'Bearer';
  expect(headers.get('www-authenticate')).toBe(status === 503 ? null : challenge);
  return `${error.extensions.code}: ${error.message}`;
}
const outcomeOfToken = async (token: string | Promise<string>, of = gateway) => outcomeOf(`Bearer ${await token}`, of);
const expectAccepted = async (...asked: Parameters<typeof outcomeOfToken>) =>
  expect(await outcomeOfToken(...asked)).toBe('accepted');

/** The first key that it publishes. */
async function keyOf({ jwksUrl }: IdentityProvider): Promise<Record<string, unknown>> {
  const { keys } = (await (await fetch(jwksUrl)).json()) as { keys: [Record<string, unknown>] };
  return keys[0];
}

const readyStatus = async ({ origin }: TestGateway) => (await fetch(`${origin}/health/ready`)).status;

const provider = await startIdentityProvider({ keys: ['PS256', 'ES256', 'ES384', 'EdDSA', 'RS256'] });
const gateway = await gatewayFor([provider]);
afterEach(() => {
  jest.useRealTimers();
});

/** From now on `Date` stands still, until it is set again. */
function holdDate() {
  jest.useFakeTimers({
    doNotFake: [
      'hrtime',
      'nextTick',
      'performance',
      'queueMicrotask',
      'setImmediate',
      'clearImmediate',
      'setInterval',
      'clearInterval',
      'setTimeout',
      'clearTimeout',
    ],
  });
}
const pass = (ms: number) => jest.setSystemTime(Date.now() + ms);

describe('An access token', () => {
  it('is what the explorers ask for, in each tab', async () => {
    const { defaultTabs } = await (await fetch(`${gateway.origin}/graphiql/options`)).json();
    const headers = expect.stringMatching(/"Authorization": "Bearer <put an access token here, then fetch the schema/);
    expect(defaultTabs).toEqual(Array(4).fill({ query: expect.any(String), headers }));
  });

  it('is taken in every form that providers give it', async () => {
    holdDate(); // on a busy machine, seconds pass before a token is looked at
    const now = nowSeconds();
    const typed = (typ: unknown, claims = {}) => provider.token(claims, { header: { typ } });
    const tokens: Readonly<Record<string, Promise<string>>> = {
      ...Object.fromEntries(
        ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'].map((alg) => [alg, provider.token({}, { alg })]),
      ),
      ...Object.fromEntries(
        ['jwt', 'application/jwt', 'at+jwt', 'AT+JWT', 'application/at+jwt', undefined].map((typ) => [
          `typ ${typ}`,
          typed(typ),
        ]),
      ),
      'one of several audiences': provider.token({ aud: ['x', 'other-audience'] }),
      'no iat and a fraction in exp': provider.token({ iat: undefined, exp: now + 600.5 }),
      'a provider clock 3 seconds ahead': provider.token({ nbf: now + 3, iat: now + 3 }),
      'an exp that has just passed': provider.token({ exp: now - 1 }),
      'the longest sub': provider.token({ sub: 's'.repeat(255) }),
      'the deepest claims': provider.token({ a: JSON.parse('['.repeat(64) + ']'.repeat(64)) }),
      'a nonce, and a type that says access token': typed('at+jwt', { nonce: 'n' }),
      'Keycloak before version 25': provider.token({ typ: 'Bearer', nonce: 'n' }),
      Cognito: provider.token({ token_use: 'access' }),
      'a key that the token brings along, and a good signature': provider.token({}, { header: { jwk: {} } }),
    };
    const outcomes = Object.entries(tokens).map(async ([name, token]) => [name, await outcomeOfToken(token)]);
    const expected = Object.keys(tokens).map((name) => [name, 'accepted']);
    expect(await Promise.all(outcomes)).toEqual(expected);
  });

  it('is taken with its scheme in any case, also when it is remembered, but not with anything around it', async () => {
    const token = await provider.token();
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer   ']) {
      expect(await outcomeOf(`${scheme} ${token}`)).toBe('accepted');
    }
    const malformed = 'UNAUTHENTICATED: Authorization must be the word Bearer and one token';
    for (const header of [token, `Bearer\t${token}`, `Bearer ${token} ${token}`, `Bearer ${token},Bearer ${token}`]) {
      expect(await outcomeOf(header)).toBe(malformed);
    }
    expect(await outcomeOf(undefined)).toMatch(
      /: in the Authorization header or, on a WebSocket, as the connection parameter authorization$/,
    );
  });

  it('that is refused is told why, and nothing of what is in it', async () => {
    const past = nowSeconds() - 3600;
    const future = nowSeconds() + 3600;
    const typed = (typ: unknown) => provider.token({}, { header: { typ } });
    const refused: readonly (readonly [string, Promise<string>])[] = [
      ['algorithm', provider.token({}, { alg: 'none' })],
      ['type', typed('id_token+jwt')],
      ['issuer', provider.token({ iss: `https://${planted}/` })],
      ['no accepted audience', provider.token({ aud: undefined, client_id: planted })], // as of Cognito
      ['key', provider.token({}, { key: strangeKey('ES256'), alg: 'ES256', kid: null })],
      ['has expired', provider.token({ exp: past })],
      ['no valid expiry', provider.token({ exp: 1e300 })],
      ['not valid yet', provider.token({ nbf: future })],
      ['no valid subject', provider.token({ sub: planted.padEnd(256, 'x') })],
      ['malformed', provider.token({ a: JSON.parse('['.repeat(65) + ']'.repeat(65)) })],
      ['malformed', provider.token({}, { header: { crit: [] } })],
      ['not an access token', provider.token({ typ: 'Refresh' })],
      ['bound', provider.token({ cnf: { jkt: planted } })],
    ];
    for (const [words, token] of refused) {
      const message = await outcomeOfToken(token);
      expect(message).toMatch(new RegExp(`^UNAUTHENTICATED: .*${words}`));
      expect(message).not.toContain(planted);
    }
  });

  it('with one changed character is refused, also while the right one is remembered', async () => {
    const token = await provider.token();
    await expectAccepted(token);
    for (const at of [5, token.indexOf('.') + 5, token.lastIndexOf('.') + 5]) {
      const other = token[at] === 'A' ? 'B' : 'A';
      expect(await outcomeOf(`Bearer ${token.slice(0, at)}${other}${token.slice(at + 1)}`)).toMatch(/^UNAUTHENTICATED/);
    }
  });

  it('counts from its first moment to its last, whether remembered or not, and again when the clock is set back', async () => {
    holdDate();
    const now = nowSeconds();
    const token = `Bearer ${await provider.token({ iat: undefined, nbf: now, exp: now + 60 })}`;
    expect(await outcomeOf(token)).toBe('accepted');
    pass(59_000);
    expect(await outcomeOf(token)).toBe('accepted');
    pass(10_000);
    for (let again = 0; again < 2; again += 1) expect(await outcomeOf(token)).toMatch(/has expired$/);
    pass(-80_000);
    expect(await outcomeOf(token)).toMatch(/not valid yet/);
    pass(40_000);
    expect(await outcomeOf(token)).toBe('accepted');
  });
});

describe('Of two providers', () => {
  it('each signs for itself alone, and the same subject is another caller', async () => {
    const other = await providerWith();
    const both = await gatewayFor([provider, other], { RATE_LIMIT_PER_MINUTE: '1' });
    await expectAccepted(provider.token(), both);
    await expectAccepted(other.token(), both);
    expect(await outcomeOfToken(provider.token({ iss: other.issuer }), both)).toMatch(/its issuer publishes$/);
    expect(await outcomeOfToken(other.token({ iss: provider.issuer }), both)).toMatch(/its issuer publishes$/);
  });

  it('one may change its keys, also under the same kid: what it signed before is refused, what the other signed is not', async () => {
    const changing = await providerWith();
    const publishAs = async (kid: string) => {
      changing.publish(undefined);
      changing.publish({ keys: [{ ...(await keyOf(changing)), kid }] });
    };
    await publishAs('same');
    const both = await gatewayFor([changing, provider]);
    const [old, kept] = [await changing.token({}, { kid: 'same' }), await provider.token()];
    for (const token of [old, kept]) await expectAccepted(token, both);
    changing.rotateKey('ES256');
    await publishAs('same');
    await expectAccepted(changing.token({}, { kid: 'same' }), both);
    expect(await outcomeOf(`Bearer ${old}`, both)).toMatch(/its issuer publishes$/);
    await expectAccepted(kept, both);
  });
});

describe('The key set', () => {
  it('is read once more for a hundred tokens of unknown keys, and not at all for what needs no key to be refused', async () => {
    const own = await providerWith();
    const guarded = await gatewayFor([own]);
    const known = await own.token();
    await expectAccepted(known, guarded);
    const asked = own.counts.jwks;
    for (const token of [own.token({}, { alg: 'none' }), own.token({ iss: 'x' }), own.token({}, { payload: '[]' })]) {
      expect(await outcomeOfToken(token, guarded)).toMatch(/^UNAUTHENTICATED/);
    }
    expect(own.counts.jwks).toBe(asked);
    const made = times(100, (n) => outcomeOfToken(own.token({}, { kid: `made-up-${n}` }), guarded));
    expect(new Set(await Promise.all(made)).size).toBe(1);
    expect(own.counts.jwks).toBe(asked + 1);
    // Nothing changed: what is known is not verified again.
    const usable = jest.spyOn(IssuerKeys.prototype, 'usable');
    await expectAccepted(known, guarded);
    expect(usable).not.toHaveBeenCalled();
  });

  it.each([
    ['86400', 600_000],
    ['60', 30_000],
  ])('that counts for %s seconds is read again after %i ms', async (seconds, ms) => {
    const own = await providerWith();
    const { setTimeout: later } = globalThis;
    const soon = (run: () => void, delay?: number) => later(run, delay === ms ? 1 : delay);
    const timers = jest.spyOn(globalThis, 'setTimeout').mockImplementation(soon as typeof setTimeout);
    await gatewayFor([own], { AUTH_KEYS_MAX_AGE_SECONDS: seconds });
    await until(() => own.counts.jwks === 2);
    timers.mockRestore();
  });

  it('that another request has just read serves a token of a new key, too', async () => {
    const own = await providerWith();
    const guarded = await gatewayFor([own]);
    await outcomeOfToken(own.token(), guarded);
    own.rotateKey('ES256');
    const { usable } = IssuerKeys.prototype;
    // Another request reads the new key between the two looks at the keys that this one takes.
    jest.spyOn(IssuerKeys.prototype, 'usable').mockImplementationOnce(async function (this: IssuerKeys) {
      const before = await usable.call(this);
      await usable.call(this, before);
      return before;
    });
    await expectAccepted(own.token(), guarded);
  });

  it('that was never read lets nobody in, and says so to callers and probes; then it does', async () => {
    const late = await providerWith();
    late.behave('drop');
    const guarded = await gatewayFor([late]);
    expect(await readyStatus(guarded)).toBe(503);
    expect(await outcomeOfToken(late.token(), guarded)).toBe(
      'AUTH_UNAVAILABLE: The keys of the identity provider cannot be read at the moment',
    );
    expect(await outcomeOfToken(late.token({ iss: 'https://other.example/' }), guarded)).toMatch(/^UNAUTHENTICATED/);
    const asked = late.counts.jwks;
    for (let n = 0; n < 9; n += 1) await outcomeOfToken(late.token(), guarded);
    expect(late.counts.jwks - asked).toBeLessThan(9); // once a second
    late.behave('ok');
    await until(async () => (await outcomeOfToken(late.token(), guarded)) === 'accepted');
    expect(await readyStatus(guarded)).toBe(200);
  });

  const rsa = publicJwk(makeKey('RS256'));
  const ec = publicJwk(makeKey('ES256'));
  it('may hold keys that cannot be used, and one with few members', async () => {
    const own = await providerWith(['ES384']);
    const { kid: _, alg: __, use: ___, ...good } = await keyOf(own);
    const unusable = [
      makeKey('ES384').privateKey.export({ format: 'jwk' }),
      { kty: 'oct', k: 'c2VjcmV0', alg: 'HS256' },
      { kid: 'no kty' },
      { ...ec, kty: 'EC', crv: 'P-384' },
      { ...rsa, use: 'enc' },
      { ...rsa, key_ops: ['encrypt'] },
      { ...rsa, n: Buffer.alloc(128, 0xff).toString('base64url'), alg: 'RS256', kid: 'short' },
    ];
    own.publish({ keys: [...unusable, { ...good, kid: 'good', key_ops: ['verify'], x5t: 'x' }], more: true });
    const guarded = await gatewayFor([own]);
    await expectAccepted(own.token({}, { kid: 'good' }), guarded);
    expect(await outcomeOfToken(own.token({}, { kid: null }), guarded)).toMatch(/its issuer publishes$/); // several fit
    own.publish({ keys: [{ ...good, key_ops: ['verify'] }] });
    await expectAccepted(own.token({}, { kid: null }), await gatewayFor([own]));
    for (const kid of ['short', 7, { $ne: '' }, '../../dev/null']) {
      const forged = own.token({}, { key: strangeKey(), alg: 'RS256', kid });
      expect(await outcomeOfToken(forged, guarded)).toMatch(/its issuer publishes$/);
    }
  });

  it.each<[string, (own: IdentityProvider) => void]>([
    ['an error', (own) => own.behave('error')],
    ['an answer that never ends', (own) => own.behave('hang-in-body')],
    ['an empty set', (own) => own.publish({ keys: [] })],
  ])('stays in use when the provider turns to %s', async (_, turn) => {
    const own = await providerWith();
    const guarded = await gatewayFor([own]);
    const old = await own.token();
    await expectAccepted(old, guarded);
    turn(own);
    expect(await outcomeOfToken(own.token({}, { kid: 'unknown' }), guarded)).toMatch(/^AUTH_UNAVAILABLE/); // a new key, perhaps
    expect(linesWith(guarded.logs, { msg: 'a key set cannot be read' })).toMatchObject([
      { issuer: own.issuer, level: 'warn' },
    ]);
    for (const token of [old, await own.token({ sub: 'new' })]) {
      await expectAccepted(token, guarded);
    }
    const asked = own.counts.jwks;
    await until(() => own.counts.jwks > asked); // again each second, without a token
  });

  it('is used through an outage for AUTH_KEYS_MAX_AGE_SECONDS, also for remembered tokens, and again after it', async () => {
    holdDate();
    const own = await providerWith();
    const guarded = await gatewayFor([own], { AUTH_KEYS_MAX_AGE_SECONDS: '60' });
    const token = `Bearer ${await own.token()}`;
    expect(await outcomeOf(token, guarded)).toBe('accepted');
    own.behave('drop');
    pass(59_000);
    expect([await outcomeOf(token, guarded), await readyStatus(guarded)]).toEqual(['accepted', 200]);
    pass(1_000);
    expect(await outcomeOf(token, guarded)).toMatch(/^AUTH_UNAVAILABLE/);
    expect(await readyStatus(guarded)).toBe(503);
    own.behave('ok');
    await until(async () => (await outcomeOf(token, guarded)) === 'accepted');
    expect(await readyStatus(guarded)).toBe(200);
  });
});
