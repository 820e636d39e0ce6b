import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { failureKeyOf, leaseKeyOf, type Store } from '../../../src/stores/Store.js';

export interface StoreUnderTest {
  /** Opens one more instance on the same data; where nothing is shared, gives the same again. */
  open(): Promise<Store>;
  /** Lets so much time pass for the store; a real wait where the clock is not ours. */
  pass(ms: number): Promise<void>;
  stop(): Promise<void>;
}

const bytes = (text: string) => Buffer.from(text, 'latin1');
const newKey = () => randomBytes(16).toString('base64url');
const taken = { state: 'taken' };

/** What every store promises. Each implementation runs it. */
export function storeContract(name: string, start: () => Promise<StoreUnderTest>): void {
  describe(`${name} keeps the contract of a store`, () => {
    let under: StoreUnderTest;
    let store: Store;
    let peer: Store;
    beforeAll(async () => {
      under = await start();
      [store, peer] = await Promise.all([under.open(), under.open()]);
    });
    afterAll(async () => {
      await Promise.all([store?.close(), peer?.close()]);
      await under?.stop();
    });

    /** What each of many gets who ask at once, by either instance. */
    const atOnce = <T>(count: number, ask: (each: Store, n: number) => Promise<T>) =>
      Promise.all(Array.from({ length: count }, (_, n) => ask(n % 2 ? store : peer, n)));
    const settle = (each: Store, key: string, owner: string, value: string, ttlMs = 60_000) =>
      each.settle(key, bytes(owner), { key, value: bytes(value), ttlMs });

    it('gives back what was set, to every instance, and undefined for what was not', async () => {
      const key = newKey();
      expect(await store.get(key)).toBeUndefined();
      const all = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
      for (const value of [bytes('one'), Buffer.alloc(0), all, randomBytes(1 << 20)]) {
        await store.set(key, value, 60_000);
        expect((await peer.get(key))?.equals(value)).toBe(true);
        value.fill('x'); // the store has a copy of its own
        if (value.length > 0) expect((await store.get(key))?.equals(value)).toBe(false);
      }
    });

    it('ends entries, claims, leases and counts when their time is over, not before', async () => {
      const [entry, prolonged, claim, lease, renewed, count] = Array.from({ length: 6 }, newKey) as [
        ...[string, string, string, string, string, string],
      ];
      await store.set(entry, bytes('x'), 1500);
      await store.set(prolonged, bytes('x'), 500);
      await store.set(prolonged, bytes('x'), 60_000);
      expect(await store.claim(claim, bytes('a'), 1500)).toBe(true);
      expect(await peer.claim(claim, bytes('b'), 1500)).toBe(false);
      await store.acquire(lease, bytes('late'), 1500);
      await store.acquire(renewed, bytes('me'), 1500);
      expect(await store.increment(count, 2, 1500)).toBe(2);
      const counts = await atOnce(20, (each) => each.increment(count, 1, 9e6));
      expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n + 3));
      expect(await peer.get(entry)).toEqual(bytes('x'));
      expect(await store.renew(renewed, bytes('me'), 60_000)).toBe(true);
      expect(await peer.acquire(lease, bytes('next'), 60_000)).toEqual({ state: 'held', owner: bytes('late') });

      await under.pass(1510);
      expect([await peer.get(entry), await peer.get(prolonged)]).toEqual([undefined, bytes('x')]);
      expect(await peer.claim(claim, bytes('b'), 60_000)).toBe(true);
      expect(await store.compareAndDelete(claim, bytes('a'))).toBe(false);
      expect(await store.increment(count, 1, 1000)).toBe(1);
      expect(await peer.acquire(renewed, bytes('you'), 60_000)).toEqual({ state: 'held', owner: bytes('me') });
      for (const next of [false, true]) {
        if (next) expect(await peer.acquire(lease, bytes('next'), 60_000)).toEqual(taken);
        expect(await store.renew(lease, bytes('late'), 60_000)).toBe(false);
        expect(await settle(store, lease, 'late', 'late')).toBe(false);
      }
    });

    it('lets exactly one of many claim a key, as long as nothing is there', async () => {
      const key = newKey();
      const won = await atOnce(40, (each, n) => each.claim(key, bytes(`claim-${n}`), 60_000));
      expect(won.filter(Boolean)).toHaveLength(1);
      const claim = bytes(`claim-${won.indexOf(true)}`);
      expect(await peer.get(key)).toEqual(claim);
      expect(await peer.compareAndDelete(key, claim)).toBe(true);
      expect(await store.claim(key, bytes('next'), 60_000)).toBe(true);
    });

    it('renews and writes for the holder of the lease and for nobody else, and ends the lease', async () => {
      const key = newKey();
      expect(await settle(store, key, 'me', 'without a lease')).toBe(false);
      for (const [text, refused] of [['first'], ['second', bytes('first')]] as const) {
        expect(await store.acquire(key, bytes('me'), 60_000, refused)).toEqual(taken);
        for (const owner of ['you', 'm', 'me ', '', '\0\r\n\xff']) {
          expect(await peer.renew(key, bytes(owner), 60_000)).toBe(false);
          expect(await settle(peer, key, owner, 'of another')).toBe(false);
        }
        expect(await peer.get(leaseKeyOf(key))).toEqual(bytes('me'));
        expect(await settle(store, key, 'me', text)).toBe(true);
        expect([await peer.get(key), await peer.get(leaseKeyOf(key))]).toEqual([bytes(text), undefined]);
      }
      expect(await settle(store, key, 'me', 'late')).toBe(false);
    });

    it('never brings back a lease that is deleted while it is renewed', async () => {
      for (let round = 0; round < 20; round++) {
        const key = newKey();
        await store.acquire(key, bytes('me'), 60_000);
        const renew = () => atOnce(10, (each) => each.renew(key, bytes('me'), 60_000));
        const asked = [renew(), peer.compareAndDelete(leaseKeyOf(key), bytes('me')), renew()] as const;
        expect(await asked[1]).toBe(true);
        await Promise.all(asked);
        expect(await settle(store, key, 'me', 'late')).toBe(false);
        expect(await store.get(leaseKeyOf(key))).toBeUndefined();
      }
    });

    it('ends a lease with a note of its failure in place of an entry', async () => {
      const key = newKey();
      await store.acquire(key, bytes('me'), 60_000);
      const note = { key: failureKeyOf(key, 'me'), value: bytes('why'), ttlMs: 60_000 };
      expect(await store.settle(key, bytes('me'), note)).toBe(true);
      expect(await peer.get(note.key)).toEqual(bytes('why'));
      expect(await peer.acquire(key, bytes('you'), 60_000)).toEqual(taken);
    });

    it('gives the entry, or the lease to exactly one of many who ask at once, and its owner to the others', async () => {
      const key = newKey();
      const acquire = () => atOnce(40, (each, n) => each.acquire(key, bytes(`owner-${n}`), 60_000));
      const turns = await acquire();
      const winner = `owner-${turns.findIndex(({ state }) => state === 'taken')}`;
      const others = turns.filter(({ state }) => state !== 'taken');
      expect(others).toEqual(Array(39).fill({ state: 'held', owner: bytes(winner) }));
      const settled = settle(peer, key, winner, 'value');
      const later = await acquire(); // asked before it is written, answered perhaps after
      expect(await settled).toBe(true);
      expect(later.map(({ state }) => state)).not.toContain('taken');
      expect(await acquire()).toEqual(Array(40).fill({ state: 'found', entry: bytes('value') }));
    });

    it('takes an entry that is refused for none, and only that one', async () => {
      const key = newKey();
      await store.set(key, bytes('old'), 60_000);
      const acquire = (refused: string) => peer.acquire(key, bytes('me'), 60_000, bytes(refused));
      const found = (text: string) => ({ state: 'found', entry: bytes(text) });
      for (const other of ['ol', 'old ', '']) expect(await acquire(other)).toEqual(found('old'));
      expect(await acquire('old')).toEqual(taken);
      const held = { state: 'held', owner: bytes('me') };
      expect(await store.acquire(key, bytes('you'), 60_000, bytes('old'))).toEqual(held);
      await settle(peer, key, 'me', 'new');
      expect(await acquire('old')).toEqual(found('new'));
    });

    it('deletes only what is exactly expected, and once', async () => {
      const key = newKey();
      await store.set(key, bytes('mine'), 60_000);
      for (const other of ['other', 'mine ']) expect(await peer.compareAndDelete(key, bytes(other))).toBe(false);
      const deleted = await atOnce(4, (each) => each.compareAndDelete(key, bytes('mine')));
      expect(deleted.filter(Boolean)).toHaveLength(1);
      expect(await store.get(key)).toBeUndefined();
    });

    it('lists what begins with a prefix, leases and notes of failures with it, however much it is', async () => {
      const [prefix, other] = [`${newKey()}.`, `${newKey()}.`];
      const keys = Array.from({ length: 300 }, (_, n) => `${prefix}${n}`);
      for (const part of [keys.slice(0, 150), keys.slice(150), [other]]) {
        await Promise.all(part.map((key) => store.set(key, bytes('x'), 60_000)));
      }
      await store.acquire(`${prefix}lease`, bytes('owner'), 60_000);
      expect(new Set(await peer.list(prefix))).toEqual(new Set([...keys, leaseKeyOf(`${prefix}lease`)]));
      expect(await store.list(`${newKey()}.`)).toEqual([]);
    });

    it('starts a counter anew when something else is in its place', async () => {
      const key = newKey();
      await store.set(key, bytes('not a number'), 60_000);
      expect(await peer.increment(key, 3, 1000)).toBe(3);
    });

    it('closes twice, and then refuses to work', async () => {
      const other = await start();
      const closing = await other.open();
      await Promise.all([closing.close(), closing.close()]);
      await expect(closing.get(newKey())).rejects.toThrow('closed');
      await other.stop();
    });
  });
}
