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

  it('opens what it sealed under the same key', () => {
    fc.assert(
      fc.property(text, fc.uint8Array(), (key, bytes) => {
        expect(sealer.open(key, sealer.seal(key, bytes))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it('opens nothing in which any bit was flipped', () => {
    fc.assert(
      fc.property(text, fc.uint8Array(), fc.nat(), (key, bytes, at) => {
        const sealed = sealer.seal(key, bytes);
        const bit = at % (sealed.length * 8);
        sealed[bit >> 3] = (sealed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(sealer.open(key, sealed)).toBeUndefined();
      }),
      { numRuns: 1000 },
    );
  });

  it('opens nothing that was cut, lengthened, made up, or moved to another name', () => {
    const sealed = sealer.seal('name', Buffer.from('value'));
    for (let length = 0; length < sealed.length; length++) {
      expect(sealer.open('name', sealed.subarray(0, length))).toBeUndefined();
    }
    expect(sealer.open('name', Buffer.concat([sealed, Buffer.of(0)]))).toBeUndefined();
    expect(sealer.open('other', sealed)).toBeUndefined();
    fc.assert(
      fc.property(text, fc.uint8Array({ maxLength: 200 }), (key, bytes) => {
        expect(sealer.open(key, Buffer.from(bytes))).toBeUndefined();
        const headed = Buffer.concat([sealed.subarray(0, 17), Buffer.from(bytes)]);
        expect(sealer.open(key, headed)).toBeUndefined();
      }),
    );
  });

  it('never gives the same bytes twice, nor the text in them', () => {
    const sealed = Array.from({ length: 200 }, () => sealer.seal('k', Buffer.from('planted-token')).toString('latin1'));
    expect(new Set(sealed.map((entry) => entry.slice(5, 17))).size).toBe(200);
    expect(sealed.join('')).not.toContain('planted');
  });

  it('names every list of parts differently, wherever their boundaries are', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 4 }), fc.array(text, { maxLength: 4 }), (a, b) => {
        expect(sealer.key(a) === sealer.key(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
    fc.assert(
      fc.property(text, fc.string({ unit: 'binary', minLength: 1 }), text, (a, b, c) => {
        expect(sealer.key([a + b, c])).not.toBe(sealer.key([a, b + c]));
        expect(sealer.key([a, b, c])).not.toBe(sealer.key([a + b + c]));
      }),
    );
    expect(sealer.key(['\ud800'])).not.toBe(sealer.key(['\ud801'])); // UTF-8 has the same bytes for both
    expect(sealer.key(['a'])).toMatch(/^[\w-]{43}$/);
  });

  it('names and opens alike in every process that has the same secret, and in no other', () => {
    const [one, two, other] = [fromClient('s'), fromClient('s'), fromClient('t')].map((m) => new Sealer(m));
    expect(two?.key(['a'])).toBe(one?.key(['a']));
    expect(other?.key(['a'])).not.toBe(one?.key(['a']));
    const sealed = one?.seal('k', Buffer.from('v')) ?? Buffer.of();
    expect(two?.open('k', sealed)).toEqual(Buffer.from('v'));
    expect(other?.open('k', sealed)).toBeUndefined();
  });

  it('finds and opens the entries of the previous key after a rotation, and no others', () => {
    const [before, after] = [new Sealer(fromKey(1)), new Sealer(fromKey(2), [fromKey(1), fromClient('older')])];
    const stored = new Map([[before.key(['token', '7']), before.seal(before.key(['token', '7']), Buffer.from('v'))]]);
    const found = after.keys(['token', '7']).flatMap((name) => {
      const sealed = stored.get(name);
      return sealed ? [after.open(name, sealed)] : [];
    });
    expect(found).toEqual([Buffer.from('v')]);
    expect(after.keys(['token', '7'])).toHaveLength(3);
    expect(after.keys(['token', '7'])[0]).toBe(after.key(['token', '7']));
    expect(before.keys(['token', '7'])).not.toContain(after.key(['token', '7']));
    const [sealed] = stored.values();
    expect(after.open(after.key(['token', '7']), sealed ?? Buffer.of())).toBeUndefined();
  });

  it('can be rotated while it is in use', () => {
    const rotating = new Sealer(fromClient('first'));
    const name = rotating.key(['a']);
    const sealed = rotating.seal(name, Buffer.from('v'));
    rotating.rotate(fromClient('second'));
    expect(rotating.key(['a'])).toBe(new Sealer(fromClient('second')).key(['a']));
    expect(rotating.keys(['a'])[1]).toBe(name);
    expect(rotating.open(name, sealed)).toEqual(Buffer.from('v'));
    rotating.rotate(fromClient('second'));
    expect(rotating.keys(['a'])).toHaveLength(2);
    rotating.rotate(fromClient('first'));
    expect(rotating.keys(['a'])[0]).toBe(name);
  });

  it('forgets all but the two newest keys before the current one', () => {
    const rotating = new Sealer(fromClient('0'));
    for (let rotation = 1; rotation <= 30; rotation++) rotating.rotate(fromClient(`${rotation}`));
    expect(rotating.keys(['a'])).toEqual(['30', '29', '28'].map((secret) => new Sealer(fromClient(secret)).key(['a'])));
  });

  it('seals an entry for each of its names with the key of that name', () => {
    const during = new Sealer(fromKey(2), [fromKey(1), fromKey(2)]);
    const entries = during.sealAll(['a'], Buffer.from('v'));
    expect(entries.map(({ key }) => key)).toEqual(during.keys(['a']));
    expect(entries).toHaveLength(2);
    for (const [at, byte] of [2, 1].entries()) {
      const { key, bytes } = entries[at] ?? { key: '', bytes: Buffer.of() };
      expect(new Sealer(fromKey(byte)).open(key, bytes)).toEqual(Buffer.from('v'));
      expect(new Sealer(fromKey(3 - byte)).open(key, bytes)).toBeUndefined();
    }
  });

  it('gives digests that depend on the purpose, the text and the key', () => {
    const digests = [
      sealer.digest('a', 'text'),
      sealer.digest('b', 'text'),
      sealer.digest('a', 'texT'),
      new Sealer(fromKey(9)).digest('a', 'text'),
      sealer.key(['a', 'text']),
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
