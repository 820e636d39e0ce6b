import { hkdfSync } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type KeyMaterial, Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';

const fromClient = (text: string): KeyMaterial => ({ from: 'client-secret', secret: new Secret(text) });
const fromKey = (byte: number): KeyMaterial => ({
  from: 'encryption-key',
  secret: new Secret(Buffer.alloc(32, byte).toString('base64')),
});
const text = fc.string({ unit: 'binary' });

describe('Sealer', () => {
  const sealer = new Sealer(fromKey(1));
  const ring = sealer.current;

  it('opens what it sealed under the same key', () => {
    fc.assert(
      fc.property(text, fc.uint8Array(), (key, bytes) => {
        expect(ring.open(key, ring.seal(key, bytes))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it('opens nothing in which any bit was flipped', () => {
    fc.assert(
      fc.property(text, fc.uint8Array(), fc.nat(), (key, bytes, at) => {
        const sealed = ring.seal(key, bytes);
        const bit = at % (sealed.length * 8);
        sealed[bit >> 3] = (sealed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(ring.open(key, sealed)).toBeUndefined();
      }),
      { numRuns: 1000 },
    );
  });

  it('opens nothing that was cut, lengthened, made up, or moved to another name', () => {
    const sealed = ring.seal('name', Buffer.from('value'));
    for (let length = 0; length < sealed.length; length++) {
      expect(ring.open('name', sealed.subarray(0, length))).toBeUndefined();
    }
    expect(ring.open('name', Buffer.concat([sealed, Buffer.of(0)]))).toBeUndefined();
    expect(ring.open('other', sealed)).toBeUndefined();
    fc.assert(
      fc.property(text, fc.uint8Array({ maxLength: 200 }), (key, bytes) => {
        expect(ring.open(key, Buffer.from(bytes))).toBeUndefined();
        const headed = Buffer.concat([sealed.subarray(0, 17), Buffer.from(bytes)]);
        expect(ring.open(key, headed)).toBeUndefined();
      }),
    );
  });

  it('never gives the same bytes twice, nor the text in them', () => {
    const sealed = Array.from({ length: 200 }, () => ring.seal('k', Buffer.from('planted-token')).toString('latin1'));
    expect(new Set(sealed.map((entry) => entry.slice(5, 17))).size).toBe(200);
    expect(sealed.join('')).not.toContain('planted');
  });

  it('names every list of parts differently, wherever their boundaries are', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 4 }), fc.array(text, { maxLength: 4 }), (a, b) => {
        expect(ring.name(a) === ring.name(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
    fc.assert(
      fc.property(text, fc.string({ unit: 'binary', minLength: 1 }), text, (a, b, c) => {
        expect(ring.name([a + b, c])).not.toBe(ring.name([a, b + c]));
        expect(ring.name([a, b, c])).not.toBe(ring.name([a + b + c]));
      }),
    );
    expect(ring.name(['\ud800'])).not.toBe(ring.name(['\ud801'])); // UTF-8 has the same bytes for both
    expect(ring.name(['a'])).toMatch(/^[\w-]{43}$/);
  });

  it('names and opens alike in every process that has the same secret, and in no other', () => {
    const [one, two, other] = ['s', 's', 't'].map((secret) => new Sealer(fromClient(secret)).current);
    expect(two?.name(['a'])).toBe(one?.name(['a']));
    expect(other?.name(['a'])).not.toBe(one?.name(['a']));
    const sealed = one?.seal('k', Buffer.from('v')) ?? Buffer.of();
    expect(two?.open('k', sealed)).toEqual(Buffer.from('v'));
    expect(other?.open('k', sealed)).toBeUndefined();
  });

  const namesOf = ({ rings }: Sealer) => rings.map((each) => each.name(['a']));
  const nameUnder = (material: KeyMaterial) => new Sealer(material).current.name(['a']);

  it('knows the previous keys, and none of them twice', () => {
    const materials = [fromKey(2), fromKey(1), fromClient('older')];
    const during = new Sealer(fromKey(2), [fromKey(1), fromKey(2), fromClient('older')]);
    expect(namesOf(during)).toEqual(materials.map(nameUnder));
  });

  it('can be rotated while it is in use', () => {
    const rotating = new Sealer(fromClient('first'));
    const [first, second] = [fromClient('first'), fromClient('second')];
    rotating.rotate(second);
    expect(namesOf(rotating)).toEqual([second, first].map(nameUnder));
    rotating.rotate(second);
    expect(namesOf(rotating)).toHaveLength(2);
    rotating.rotate(first);
    expect(namesOf(rotating)).toEqual([first, second].map(nameUnder));
  });

  it('forgets all but the two newest keys before the current one', () => {
    const rotating = new Sealer(fromClient('0'));
    for (let rotation = 1; rotation <= 30; rotation++) rotating.rotate(fromClient(`${rotation}`));
    expect(namesOf(rotating)).toEqual(['30', '29', '28'].map((secret) => nameUnder(fromClient(secret))));
  });

  it('gives digests that depend on the purpose, the text and the key', () => {
    const digests = [
      sealer.digest('a', 'text'),
      sealer.digest('b', 'text'),
      sealer.digest('a', 'texT'),
      new Sealer(fromKey(9)).digest('a', 'text'),
      ring.name(['a', 'text']),
    ];
    expect(new Set(digests).size).toBe(5);
  });

  it('shows neither its secret nor a key derived from it', () => {
    const shown = inspect(new Sealer(fromClient('planted-secret')), { showHidden: true, depth: 9 });
    expect(shown).not.toContain('planted');
    expect(shown).not.toMatch(/Buffer|[\da-f]{8}/);
  });

  it('refuses to work without key material', () => {
    expect(() => new Sealer(fromClient(''))).toThrow('must not be empty');
  });
});

describe('The keys of a sealer', () => {
  const idOf = (from: KeyMaterial['from'], input: Buffer) =>
    Buffer.from(hkdfSync('sha256', input, 'taxpayer-gateway/store', `v1/${from}/id`, 4)).toString('hex');
  const idsOf = ({ rings }: Sealer) => rings.map(({ id }) => id.toString('hex'));

  it('come from the bytes that an encryption key stands for in base64', () => {
    const bytes = Buffer.from('fbff00fe3e3f', 'hex');
    const secret = new Secret(bytes.toString('base64'));
    expect(idsOf(new Sealer({ from: 'encryption-key', secret }))).toEqual([idOf('encryption-key', bytes)]);
  });

  it.each(['pässword €', 'c29tZXRoaW5n'])('come from the text of a client secret as it is: %s', (secret) => {
    expect(idsOf(new Sealer(fromClient(secret)))).toEqual([idOf('client-secret', Buffer.from(secret, 'utf8'))]);
  });

  const [first, second] = [1, 2].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer];
  const client = idOf('client-secret', Buffer.from('client secret'));
  const secretOf = (bytes: Buffer) => new Secret(bytes.toString('base64'));
  it.each([
    ['are those of the encryption key alone', second, undefined, [idOf('encryption-key', second)]],
    [
      'are those of the encryption key, then of the previous one',
      second,
      first,
      [idOf('encryption-key', second), idOf('encryption-key', first)],
    ],
    ['are those of the client secret alone when no key is configured', undefined, undefined, [client]],
    [
      'are those of the client secret, then of the previous key, once the key was taken out of use',
      undefined,
      first,
      [client, idOf('encryption-key', first)],
    ],
  ])('%s', (_, key, previous, expected) => {
    const configured = {
      encryptionKey: key && secretOf(key),
      previousEncryptionKey: previous && secretOf(previous),
    };
    expect(idsOf(Sealer.of(configured, new Secret('client secret')))).toEqual(expected);
  });

  it('also seal an empty text', () => {
    const ring = new Sealer(fromKey(1)).current;
    expect(ring.open('name', ring.seal('name', Buffer.of()))).toEqual(Buffer.of());
  });
});
