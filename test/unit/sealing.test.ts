import { inspect } from 'node:util';
import fc from 'fast-check';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { Sealer } from '../../src/cache/Sealer.js';
import { Secret } from '../../src/config/Secret.js';
import { LocalStore } from '../../src/stores/LocalStore.js';
import { StoreError } from '../../src/stores/StoreError.js';
import { times } from '../support/times.js';
import { until } from '../support/until.js';

const UPSTREAM_CLIENT_SECRET = new Secret('planted-secret');
const sealerOf = (byte: number) => {
  const key = new Secret(Buffer.alloc(32, byte).toString('base64'));
  return new Sealer({ UPSTREAM_CLIENT_SECRET, CACHE_ENCRYPTION_KEY: [key] });
};
const sealedIn = (store: LocalStore, UPSTREAM_API_VERSION = '1') =>
  new SealedStore({ store, sealer: sealerOf(1), UPSTREAM_BASE_URL: '', UPSTREAM_CLIENT_ID: '', UPSTREAM_API_VERSION });
const outcome = { ageMs: 0, begunAt: 0, ttlMs: 60_000 };
const text = fc.string({ unit: 'binary' });

describe('Sealer', () => {
  const sealer = sealerOf(1);

  it('opens nothing in which any bit was flipped, or the end is missing', () => {
    fc.assert(
      fc.property(text, fc.uint8Array(), fc.nat(), (key, bytes, at) => {
        const sealed = sealer.seal(key, bytes);
        expect(sealer.open(key, sealed.subarray(0, at % sealed.length))).toBeUndefined();
        const bit = at % (sealed.length * 8);
        sealed[bit >> 3] = (sealed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(sealer.open(key, sealed)).toBeUndefined();
      }),
      { numRuns: 1000 },
    );
  });

  it('never gives the same bytes twice, nor the text in them', () => {
    const sealed = times(200, () => sealer.seal('k', Buffer.from('planted-token')).toString('latin1'));
    expect(new Set(sealed.map((entry) => entry.slice(4, 16))).size).toBe(200);
    expect(sealed.join('')).not.toContain('planted');
  });

  it('names every list of parts differently, wherever their boundaries are', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 4 }), fc.array(text, { maxLength: 4 }), (a, b) => {
        expect(sealer.name(a) === sealer.name(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
    expect(sealer.name(['a', 'b'])).not.toBe(sealer.name(['ab']));
    expect(sealer.name(['\ud800'])).not.toBe(sealer.name(['\ud801'])); // UTF-8 has the same bytes for both
    expect(sealer.name(['a'])).toMatch(/^[\w-]{43}$/);
  });

  it('gives digests that depend on the purpose, the text and the key', () => {
    const digests = [
      sealer.digest('a', 'text'),
      sealer.digest('b', 'text'),
      sealer.digest('a', 'texT'),
      sealerOf(9).digest('a', 'text'),
      sealer.name(['a', 'text']),
    ];
    expect(new Set(digests).size).toBe(5);
  });

  it('shows neither its secret nor a key derived from it', () => {
    const shown = inspect(new Sealer({ UPSTREAM_CLIENT_SECRET, CACHE_ENCRYPTION_KEY: undefined }), {
      showHidden: true,
      depth: 9,
    });
    expect(shown).not.toContain('planted');
    expect(shown).not.toMatch(/Buffer|[\da-f]{8}/);
  });
});

it('Two versions of the service share all names, but nothing that the service answered', async () => {
  const store = new LocalStore();
  const [old, next] = [sealedIn(store), sealedIn(store, '2')] as const;
  const place = old.placeOf('token', 'own');
  await old.settle(place, 'me', { ...outcome, version: 'v', value: 'secret' });
  expect(await next.acquire(place, { owner: 'me', leaseMs: 1 })).toMatchObject({ stored: { value: undefined } });
  await old.put(['key'], 'link', 60_000);
  expect(await next.get(['key'])).toMatchObject({ value: 'link' });
  expect(await next.forget({ id: 'x', subject: 'own' })).toBe(1);
});

it('A claim whose answer was lost is withdrawn again and again until it was there: it may arrive late', async () => {
  const found = [false, true];
  const put = () => Promise.reject(new StoreError('timed-out'));
  const sealed = sealedIn({ put, deleteIf: async () => found.shift() } as never);
  await expect(sealed.claim(['key'], '', 1)).rejects.toThrow(StoreError);
  await until(() => found.length === 0);
});

it('What was sealed for one taxpayer, field and version is nothing anywhere else', async () => {
  const store = new LocalStore();
  const sealed = sealedIn(store);
  const own = sealed.placeOf('token', 'own');
  await sealed.settle(own, 'me', { ...outcome, version: 'first', value: 'secret' });
  const wish = { owner: 'me', leaseMs: 1000 };
  const opened = async (place: typeof own) => {
    const turn = await sealed.acquire(place, wish);
    return turn.state === 'found' && turn.stored.value;
  };
  expect(await opened(own)).toBe('secret');
  const turn = await store.acquire(own, wish);
  const { version, value } = turn.state === 'found' ? turn.stored : { version: '', value: Buffer.of() };
  const another = sealed.placeOf('token', 'another');
  const ofAnother = sealed.placeOf('job', 'own', 'job');
  for (const place of [another, ofAnother]) await store.settle(place, 'me', { ...outcome, version, value });
  await store.settle(own, 'me', { ...outcome, version: 'second', value });
  expect(await Promise.all([own, another, ofAnother].map(opened))).toEqual([undefined, undefined, undefined]);
});
