import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { failureKeyOf, leaseKeyOf, type Store } from '../../../src/stores/Store.js';
import { type StoreProcess, startStoreProcess } from '../storeProcess.js';
import { storeRaces } from './storeRaces.js';

export interface StoreUnderTest {
  /** Opens one more instance on the same data. */
  open(): Promise<Store>;
  /** Lets so much time pass for the store; a real wait where the clock is not ours. */
  pass(ms: number): Promise<void>;
  /** What another process opens to share the data; undefined when nothing is shared. */
  readonly url: string | undefined;
  stop(): Promise<void>;
}

const bytes = (text: string) => Buffer.from(text);
const newKey = () => randomBytes(16).toString('base64url');

/** What every store promises. Each implementation runs it. */
export function storeContract(name: string, start: () => Promise<StoreUnderTest>): void {
  describe(`${name} keeps the contract of a store`, () => {
    let under: StoreUnderTest;
    let store: Store;
    let peer: Store;
    beforeAll(async () => {
      under = await start();
      [store, peer] = await Promise.all([under.open(), under.open()]);
    }, 60_000);
    afterAll(async () => {
      await Promise.all([store?.close(), peer?.close()]);
      await under?.stop();
    });

    it('gives back what was set, to every instance, and undefined for what was not', async () => {
      const key = newKey();
      expect(await store.get(key)).toBeUndefined();
      await store.set(key, bytes('one'), 60_000);
      expect(await peer.get(key)).toEqual(bytes('one'));
      await peer.set(key, bytes('two'), 60_000);
      expect(await store.get(key)).toEqual(bytes('two'));
    });

    it('keeps any bytes: none, all 256, a megabyte', async () => {
      const values = [Buffer.alloc(0), Buffer.from(Array.from({ length: 256 }, (_, n) => n)), randomBytes(1 << 20)];
      for (const value of values) {
        const key = newKey();
        await store.set(key, value, 60_000);
        expect((await peer.get(key))?.equals(value)).toBe(true);
        expect(await peer.compareAndDelete(key, value)).toBe(true);
      }
    });

    it('forgets an entry when its time is over, not before, and a new set counts anew', async () => {
      const [short, long] = [newKey(), newKey()];
      await store.set(short, bytes('x'), 1000);
      await store.set(long, bytes('x'), 500);
      await store.set(long, bytes('x'), 60_000);
      expect(await peer.get(short)).toEqual(bytes('x'));
      await under.pass(1010);
      expect(await peer.get(short)).toBeUndefined();
      expect(await peer.get(long)).toEqual(bytes('x'));
    });

    it('is not changed by someone who reuses the buffers', async () => {
      const key = newKey();
      const value = bytes('kept');
      await store.set(key, value, 60_000);
      value.fill('x');
      (await store.get(key))?.fill('y');
      expect(await store.get(key)).toEqual(bytes('kept'));
    });

    it('lets a key be claimed anew once its claim has run out', async () => {
      const key = newKey();
      expect(await store.claim(key, bytes('a'), 500)).toBe(true);
      expect(await peer.claim(key, bytes('b'), 500)).toBe(false);
      await under.pass(510);
      expect(await peer.claim(key, bytes('b'), 60_000)).toBe(true);
      expect(await store.compareAndDelete(key, bytes('a'))).toBe(false);
      expect(await store.get(key)).toEqual(bytes('b'));
    });

    it('lets exactly one of many claim a key, as long as nothing is there', async () => {
      const key = newKey();
      const claims = Array.from({ length: 40 }, (_, n) => bytes(`claim-${n}`));
      const won = await Promise.all(claims.map((claim, n) => (n % 2 ? store : peer).claim(key, claim, 60_000)));
      expect(won.filter(Boolean)).toHaveLength(1);
      expect(await peer.get(key)).toEqual(claims[won.indexOf(true)]);
      expect(await peer.compareAndDelete(key, claims[won.indexOf(true)] ?? bytes(''))).toBe(true);
      expect(await store.claim(key, bytes('next'), 60_000)).toBe(true);
    });

    it('writes for the holder of the lease and for nobody else, over whatever is there, and ends the lease', async () => {
      const key = newKey();
      const settle = (text: string, owner: string) =>
        store.settle(key, bytes(owner), { key, value: bytes(text), ttlMs: 60_000 });
      expect(await settle('without a lease', 'me')).toBe(false);
      expect(await store.get(key)).toBeUndefined();
      for (const text of ['first', 'second']) {
        await peer.claim(leaseKeyOf(key), bytes('me'), 60_000);
        for (const owner of ['you', 'm', 'me ', '']) expect(await settle('of another', owner)).toBe(false);
        expect(await peer.get(leaseKeyOf(key))).toEqual(bytes('me'));
        expect(await settle(text, 'me')).toBe(true);
        expect(await peer.get(key)).toEqual(bytes(text));
        expect(await peer.get(leaseKeyOf(key))).toBeUndefined();
      }
      expect(await settle('late', 'me')).toBe(false);
      expect(await peer.get(key)).toEqual(bytes('second'));
    });

    it('writes no longer for a holder whose lease ran out, and forgets what it wrote when its time is over', async () => {
      const [key, short] = [newKey(), newKey()];
      for (const each of [key, short]) await store.acquire(each, bytes('me'), 1000);
      expect(await store.settle(short, bytes('me'), { key: short, value: bytes('x'), ttlMs: 1000 })).toBe(true);
      await under.pass(1010);
      expect(await peer.get(short)).toBeUndefined();
      expect(await store.settle(key, bytes('me'), { key, value: bytes('y'), ttlMs: 1000 })).toBe(false);
    });

    it('renews a lease for its holder, to whom it is as good as a new one, and for nobody else', async () => {
      const key = newKey();
      const renew = (owner: string, ttlMs: number) => store.renew(key, bytes(owner), ttlMs);
      expect(await renew('me', 60_000)).toBe(false);
      await store.acquire(key, bytes('me'), 1000);
      for (const owner of ['you', 'm', 'me ', '']) expect(await peer.renew(key, bytes(owner), 60_000)).toBe(false);
      await under.pass(600);
      expect(await renew('me', 1000)).toBe(true);
      await under.pass(600);
      expect(await peer.acquire(key, bytes('you'), 60_000)).toEqual({ state: 'held', owner: bytes('me') });
      expect(await renew('me', 60_000)).toBe(true);
      expect(await store.settle(key, bytes('me'), { key, value: bytes('x'), ttlMs: 60_000 })).toBe(true);
      expect(await peer.get(key)).toEqual(bytes('x'));
    });

    it('gives a lease that was lost neither back nor to its late holder: over, deleted, or taken by the next', async () => {
      const key = newKey();
      const late = async () => [
        await store.renew(key, bytes('late'), 60_000),
        await store.settle(key, bytes('late'), { key, value: bytes('late'), ttlMs: 60_000 }),
      ];
      await store.acquire(key, bytes('late'), 500);
      await under.pass(510);
      expect(await late()).toEqual([false, false]);

      await store.acquire(key, bytes('late'), 60_000);
      expect(await peer.compareAndDelete(leaseKeyOf(key), bytes('late'))).toBe(true);
      expect(await late()).toEqual([false, false]);
      expect(await peer.get(leaseKeyOf(key))).toBeUndefined();

      await peer.acquire(key, bytes('next'), 1000);
      expect(await late()).toEqual([false, false]);
      expect(await peer.get(leaseKeyOf(key))).toEqual(bytes('next'));
      await under.pass(1010); // and not prolonged either
      expect(await peer.acquire(key, bytes('third'), 60_000)).toEqual({ state: 'taken' });
      expect(await store.get(key)).toBeUndefined();
    });

    it('never brings back a lease that is deleted while it is renewed', async () => {
      for (let round = 0; round < 30; round++) {
        const key = newKey();
        await store.acquire(key, bytes('me'), 60_000);
        const renewals = Array.from({ length: 10 }, (_, n) => (n % 2 ? store : peer).renew(key, bytes('me'), 60_000));
        const deleted = peer.compareAndDelete(leaseKeyOf(key), bytes('me'));
        const later = Array.from({ length: 10 }, (_, n) => (n % 2 ? store : peer).renew(key, bytes('me'), 60_000));
        expect(await deleted).toBe(true);
        await Promise.all([...renewals, ...later]);
        expect(await store.get(leaseKeyOf(key))).toBeUndefined();
      }
    });

    it('ends a lease with a note of its failure in place of an entry', async () => {
      const key = newKey();
      await store.acquire(key, bytes('me'), 60_000);
      const note = { key: failureKeyOf(key, 'me'), value: bytes('why'), ttlMs: 60_000 };
      expect(await store.settle(key, bytes('me'), note)).toBe(true);
      expect(await peer.get(note.key)).toEqual(bytes('why'));
      expect(await peer.acquire(key, bytes('you'), 60_000)).toEqual({ state: 'taken' });
    });

    it('gives the entry, or the lease to exactly one of many who ask at once, and its owner to the others', async () => {
      const key = newKey();
      const owners = Array.from({ length: 40 }, (_, n) => `owner-${n}`);
      const acquire = (owner: string, n: number) => (n % 2 ? store : peer).acquire(key, bytes(owner), 60_000);
      const turns = await Promise.all(owners.map(acquire));
      const winner = owners[turns.findIndex(({ state }) => state === 'taken')] ?? '';
      const others = turns.filter(({ state }) => state !== 'taken');
      expect(others).toEqual(Array(39).fill({ state: 'held', owner: bytes(winner) }));
      await store.settle(key, bytes(winner), { key, value: bytes('value'), ttlMs: 60_000 });
      const found = { state: 'found', entry: bytes('value') };
      expect(await Promise.all(owners.map(acquire))).toEqual(owners.map(() => found));
    });

    it('takes an entry that is refused for none, and only that one', async () => {
      const key = newKey();
      await store.set(key, bytes('old'), 60_000);
      const acquire = (refused: string) => peer.acquire(key, bytes('me'), 60_000, bytes(refused));
      for (const other of ['ol', 'old ', ''])
        expect(await acquire(other)).toEqual({ state: 'found', entry: bytes('old') });
      expect(await acquire('old')).toEqual({ state: 'taken' });
      expect(await store.acquire(key, bytes('you'), 60_000, bytes('old'))).toEqual({
        state: 'held',
        owner: bytes('me'),
      });
      await peer.settle(key, bytes('me'), { key, value: bytes('new'), ttlMs: 60_000 });
      expect(await acquire('old')).toEqual({ state: 'found', entry: bytes('new') });
    });

    it('has nobody take a lease who could have found the entry', async () => {
      for (let round = 0; round < 30; round++) {
        const key = newKey();
        await store.acquire(key, bytes('first'), 60_000);
        const asked = Array.from({ length: 10 }, (_, n) => (n % 2 ? store : peer).acquire(key, bytes(`${n}`), 60_000));
        const settled = peer.settle(key, bytes('first'), { key, value: bytes('x'), ttlMs: 60_000 });
        const later = Array.from({ length: 10 }, (_, n) => (n % 2 ? store : peer).acquire(key, bytes(`${n}`), 60_000));
        const states = (await Promise.all([...asked, ...later])).map(({ state }) => state);
        expect(await settled).toBe(true);
        expect(states).not.toContain('taken');
      }
    });

    it('keeps apart the leases of many keys', async () => {
      const keys = Array.from({ length: 40 }, newKey);
      const owner = (n: number) => bytes(`owner-${n}`);
      await Promise.all(keys.map((key, n) => store.acquire(key, owner(n), 60_000)));
      const settled = (shift: number) =>
        Promise.all(
          keys.map((key, n) => peer.settle(key, owner(n + shift), { key, value: bytes(`value-${n}`), ttlMs: 60_000 })),
        );
      expect(new Set(await settled(1))).toEqual(new Set([false]));
      expect(new Set(await settled(0))).toEqual(new Set([true]));
      for (const [n, key] of keys.entries()) expect(await store.get(key)).toEqual(bytes(`value-${n}`));
    });

    it('deletes only what is exactly expected, and once', async () => {
      const key = newKey();
      await store.set(key, bytes('mine'), 60_000);
      expect(await peer.compareAndDelete(key, bytes('other'))).toBe(false);
      expect(await peer.compareAndDelete(key, bytes('mine '))).toBe(false);
      const deleted = await Promise.all([store, peer, store, peer].map((s) => s.compareAndDelete(key, bytes('mine'))));
      expect(deleted.filter(Boolean)).toHaveLength(1);
      expect(await store.get(key)).toBeUndefined();
    });

    it('lists what begins with a prefix, leases and notes of failures with it, and nothing that is gone', async () => {
      const [prefix, other] = [`${newKey()}.`, `${newKey()}.`];
      const [entry, failed, over] = [`${prefix}entry`, `${prefix}failed`, `${prefix}over`];
      await Promise.all([entry, over, other].map((key) => store.set(key, bytes('x'), key === over ? 500 : 60_000)));
      await store.acquire(failed, bytes('owner'), 60_000);
      const note = { key: failureKeyOf(failed, 'owner'), value: bytes('x'), ttlMs: 60_000 };
      expect([...(await peer.list(prefix))].sort()).toEqual([entry, leaseKeyOf(failed), over].sort());
      await store.settle(failed, bytes('owner'), note);
      await peer.compareAndDelete(entry, bytes('x'));
      await under.pass(510);
      expect(await peer.list(prefix)).toEqual([note.key]);
      expect(await store.list(`${newKey()}.`)).toEqual([]);
    });

    it('lists all of a thousand', async () => {
      const prefix = `${newKey()}.`;
      const keys = Array.from({ length: 1000 }, (_, n) => `${prefix}${n}`);
      // A hundred at a time: each has to be answered within a second, also on a busy machine.
      for (let n = 0; n < keys.length; n += 100) {
        await Promise.all(keys.slice(n, n + 100).map((key) => store.set(key, bytes('x'), 60_000)));
      }
      expect(new Set(await peer.list(prefix))).toEqual(new Set(keys));
    });

    it('counts every increment within one window and starts again after it', async () => {
      const key = newKey();
      expect(await store.increment(key, 2, 2000)).toBe(2);
      const counts = await Promise.all(
        Array.from({ length: 20 }, (_, n) => (n % 2 ? store : peer).increment(key, 1, 9e6)),
      );
      expect(counts.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n + 3));
      await under.pass(2010);
      expect(await store.increment(key, 1, 1000)).toBe(1);
    });

    it('starts a counter anew when something else is in its place', async () => {
      const key = newKey();
      await store.set(key, bytes('not a number'), 60_000);
      expect(await peer.increment(key, 3, 1000)).toBe(3);
    });

    it('closes twice, and then refuses to work', async () => {
      const key = newKey();
      const closing = under.url ? await under.open() : await start().then((other) => other.open());
      await closing.set(key, bytes('x'), 60_000);
      await Promise.all([closing.close(), closing.close()]);
      await closing.close();
      await expect(closing.get(key)).rejects.toThrow('closed');
      await expect(closing.set(key, bytes('x'), 1000)).rejects.toThrow('closed');
    });

    it('is shared by several processes: one lease, one count, and no handle left', async () => {
      if (!under.url) return;
      const { url } = under;
      const processes: StoreProcess[] = await Promise.all([1, 2, 3].map(() => startStoreProcess(url)));
      const [lease, counter, entry] = [newKey(), newKey(), newKey()];
      const won = await Promise.all(processes.map((p) => p.order({ do: 'acquire', key: lease, owner: `${p.pid}` })));
      expect(won.filter(Boolean)).toHaveLength(1);
      await Promise.all(processes.map((p) => p.order({ do: 'increment', key: counter, times: 50 })));
      expect(await store.increment(counter, 1, 1000)).toBe(151);

      const winner = processes[won.indexOf(true)];
      await winner?.order({ do: 'set', key: entry, value: 'fetched', ttlMs: 60_000 });
      expect(await winner?.order({ do: 'compareAndDelete', key: leaseKeyOf(lease), expected: `${winner.pid}` })).toBe(
        true,
      );
      expect(await store.get(entry)).toEqual(bytes('fetched'));
      expect(await Promise.all(processes.map((p) => p.close()))).toEqual([0, 0, 0]);
    }, 60_000);

    storeRaces(() => under);
  });
}
