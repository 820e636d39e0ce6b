import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { type KeyMaterial, Sealer } from '../../src/cache/sealing.js';
import { LmdbStore } from '../../src/stores/LmdbStore.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { counted, encryptionKey } from '../support/sealed.js';

const [oldKey, newKey] = [encryptionKey(1), encryptionKey(2)];
const name = ['some', 'thing'];
const minute = 60_000;

describe('A sealed store during a rotation', () => {
  let directory: string;
  let store: LmdbStore;
  /** Before, during and after: what a process of each kind makes of one store. */
  let before: SealedStore;
  let during: SealedStore;
  let after: SealedStore;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'sealed-store-test-'));
    store = LmdbStore.open(directory);
    const process = (...keys: [KeyMaterial, ...KeyMaterial[]]) =>
      new SealedStore({ store, sealer: new Sealer(keys[0], keys.slice(1)), scope: ['scope'] });
    [before, during, after] = [process(oldKey), process(newKey, oldKey), process(newKey)];
  });
  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true });
  });

  it('shows what it wrote to processes that know either key', async () => {
    await during.set(name, 'value', minute);
    expect(await before.look(name)).toBe('value');
    expect(await after.look(name)).toBe('value');
  });

  it('reads what processes of either key wrote, the newest of it', async () => {
    await before.set(name, 'first', minute);
    expect(await during.look(name)).toBe('first');
    await before.set(name, 'second', 2 * minute);
    expect(await during.look(name)).toBe('second');
    await after.set(name, 'third', 3 * minute);
    expect(await during.look(name)).toBe('third');
  });

  it('seals what it read anew, unless it was only to look', async () => {
    await before.set(name, 'value', minute);
    expect(await during.look(name)).toBe('value');
    expect(await after.look(name)).toBeUndefined();
    await during.find(name);
    expect(await after.look(name)).toBe('value');
  });

  it('takes an entry that is refused for none, under whichever key it was found and sealed anew', async () => {
    await before.set(name, 'too old', minute);
    const first = await during.acquire(name, 'me', minute);
    if (first.state !== 'found') throw new Error(first.state);
    expect(first.entry.value).toBe('too old');
    expect(await after.look(name)).toBe('too old');
    expect(await during.acquire(name, 'me', minute, first.entry.bytes)).toEqual({ state: 'taken' });
    await during.release(name, 'me');
    await new Promise((resolve) => setTimeout(resolve, 2)); // the newest is the one that expires last
    await before.set(name, 'newer', minute);
    expect(await during.acquire(name, 'me', minute, first.entry.bytes)).toMatchObject({ entry: { value: 'newer' } });
  });

  it('claims a name under every key, or under none', async () => {
    const claimed = async (sealed: SealedStore, part: string, value: string) =>
      (await sealed.claim([part], value, minute)) !== undefined;
    expect(await claimed(before, 'a', 'before')).toBe(true);
    expect(await claimed(during, 'a', 'during')).toBe(false);
    expect(await after.look(['a'])).toBeUndefined();

    expect(await claimed(during, 'b', 'during')).toBe(true);
    expect(await claimed(before, 'b', 'before')).toBe(false);
    expect(await claimed(after, 'b', 'after')).toBe(false);

    expect(await claimed(after, 'c', 'after')).toBe(true);
    expect(await claimed(during, 'c', 'during')).toBe(false);
    expect(await before.look(['c'])).toBeUndefined(); // given back
    expect(await during.look(['c'])).toBe('after');
  });

  it('lets one of many claim a name at once, whichever keys they know', async () => {
    for (let round = 0; round < 50; round++) {
      const claimants = [before, during, during, before, during];
      const claimed = await Promise.all(claimants.map((one, at) => one.claim([`${round}`], at, minute)));
      expect(claimed.filter(Boolean)).toHaveLength(1);
      expect(await during.look([`${round}`])).toBe(claimed.findIndex(Boolean));
    }
  });

  it('makes a claim that is withdrawn free under every key, and leaves what was written over it', async () => {
    await (await during.claim(name, 'claimed', minute))?.withdraw();
    for (const process of [before, during, after]) expect(await process.look(name)).toBeUndefined();
    const claim = await during.claim(name, 'claimed', minute);
    await during.set(name, 'written', minute);
    await claim?.withdraw();
    for (const process of [before, during, after]) expect(await process.look(name)).toBe('written');
  });

  it('writes under a lease for processes that know either key, and nothing once somebody else has the lease', async () => {
    expect(await during.settle(name, 'without', minute, 'me')).toBe(false);
    await during.acquire(name, 'me', minute);
    expect(await during.settle(name, 'value', minute, 'me')).toBe(true);
    for (const process of [before, during, after]) {
      expect(await process.look(name)).toBe('value');
      expect(await process.leaseOwner(name)).toBeUndefined();
    }
    const old = await before.find(name);
    expect(await before.acquire(name, 'you', minute, old?.bytes)).toEqual({ state: 'taken' });
    expect(await during.settle(name, 'late', minute, 'me')).toBe(false);
    expect(await before.settle(name, 'next', 2 * minute, 'you')).toBe(true);
    expect(await during.look(name)).toBe('next');
  });

  it('holds a lease against processes that know either key, until it is released', async () => {
    expect(await during.acquire(name, 'me', minute)).toEqual({ state: 'taken' });
    const held = { state: 'held', owner: Buffer.from('me') };
    for (const process of [before, after, during]) {
      expect(await process.acquire(name, 'you', minute)).toEqual(held);
      expect(await process.leaseOwner(name)).toEqual(held.owner);
    }
    await during.release(name, 'you');
    expect(await before.leaseOwner(name)).toEqual(held.owner);
    await during.release(name, 'me');
    expect(await during.leaseOwner(name)).toBeUndefined();
    expect(await during.acquire(name, 'you', minute)).toEqual({ state: 'taken' });
  });

  it('renews a lease under every key, and for as long as it has it under one', async () => {
    const moment = 1000;
    await during.acquire(name, 'me', moment);
    expect(await during.renew(name, 'you', minute)).toBe(false);
    expect(await during.renew(name, 'me', minute)).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, moment + 10));
    for (const process of [before, after]) expect(await process.leaseOwner(name)).toEqual(Buffer.from('me'));
    await before.release(name, 'me');
    expect(await during.renew(name, 'me', minute)).toBe(true);
    await after.release(name, 'me');
    expect(await during.renew(name, 'me', minute)).toBe(false);
    for (const process of [before, after]) expect(await process.leaseOwner(name)).toBeUndefined();
  });

  it('goes on renewing a lease that was taken before the rotation', async () => {
    const sealer = new Sealer(oldKey);
    const rotated = new SealedStore({ store, sealer, scope: ['scope'] });
    await rotated.acquire(name, 'me', minute);
    sealer.rotate(newKey);
    expect(await rotated.renew(name, 'me', minute)).toBe(true);
    expect(await during.acquire(name, 'you', minute)).toEqual({ state: 'held', owner: Buffer.from('me') });
    expect(await after.leaseOwner(name)).toBeUndefined();
  });

  it.each(['before', 'after'] as const)('sees a lease that a process from %s it holds', async (which) => {
    const holder = which === 'before' ? before : after;
    await holder.acquire(name, 'me', minute);
    expect(await during.acquire(name, 'you', minute)).toEqual({ state: 'held', owner: Buffer.from('me') });
    expect(await during.leaseOwner(name)).toEqual(Buffer.from('me'));
    await holder.release(name, 'me');
    expect(await during.acquire(name, 'you', minute)).toEqual({ state: 'taken' });
  });

  it.each(['before', 'after'] as const)(
    'finds the entry of a process from %s it, or takes the lease',
    async (which) => {
      const writer = which === 'before' ? before : after;
      await writer.set(name, 'value', minute);
      const turn = await during.acquire(name, 'me', minute);
      expect(turn).toMatchObject({ state: 'found', entry: { value: 'value' } });
      for (const process of [before, after]) expect(await process.leaseOwner(name)).toBeUndefined();
      const refused = turn.state === 'found' ? turn.entry.bytes : undefined;
      await during.acquire(name, 'me', minute, (await during.find(name))?.bytes ?? refused);
      for (const process of [before, after]) expect(await process.leaseOwner(name)).toEqual(Buffer.from('me'));
    },
  );

  it('leaves the failure of a lease holder to those who waited for it, whichever key they know', async () => {
    await during.acquire(name, 'me', minute);
    await during.fail(name, 'why', minute, 'me');
    for (const process of [before, during, after]) {
      expect(await process.failureOf(name, 'me')).toBe('why');
      expect(await process.failureOf(name, 'you')).toBeUndefined();
      expect(await process.look(name)).toBeUndefined();
    }
    expect(await before.acquire(name, 'you', minute)).toEqual({ state: 'taken' });
  });

  it('goes on with the counts of processes that know either key', async () => {
    await before.increment(name, 5, minute);
    expect(await during.increment(name, 1, 2 * minute)).toBe(6);
    expect(await before.increment(name, 1, minute)).toBe(7);
    await after.increment(name, 10, minute);
    expect(await during.increment(name, 1, minute)).toBe(12);
  });
});

describe('A sealed store with one key', () => {
  it.each([
    ['find', (sealed: SealedStore) => sealed.find(name), ['get']],
    ['look', (sealed: SealedStore) => sealed.look(name), ['get']],
    ['set', (sealed: SealedStore) => sealed.set(name, 1, minute), ['set']],
    ['claim', (sealed: SealedStore) => sealed.claim(name, 1, minute), ['claim']],
    ['settle', (sealed: SealedStore) => sealed.settle(name, 1, minute, 'me'), ['settle']],
    ['fail', (sealed: SealedStore) => sealed.fail(name, 1, minute, 'me'), ['settle']],
    ['increment', (sealed: SealedStore) => sealed.increment(name, 1, minute), ['increment']],
    ['acquire', (sealed: SealedStore) => sealed.acquire(name, 'me', minute), ['acquire']],
    ['renew', (sealed: SealedStore) => sealed.renew(name, 'me', minute), ['renew']],
    ['leaseOwner', (sealed: SealedStore) => sealed.leaseOwner(name), ['get']],
    ['failureOf', (sealed: SealedStore) => sealed.failureOf(name, 'me'), ['get']],
    ['release', (sealed: SealedStore) => sealed.release(name, 'me'), ['compareAndDelete']],
  ])('asks the store once to %s', async (_, operation, expected) => {
    const { store, calls } = counted(new MemoryStore());
    // The same key as current and previous, as an operator may leave it, is one key.
    await operation(new SealedStore({ store, sealer: new Sealer(oldKey, [oldKey]), scope: [] }));
    expect(calls).toEqual(expected);
  });

  it('asks the store three times for what is not there after thirty rotations', async () => {
    const { store, calls } = counted(new MemoryStore());
    const sealer = new Sealer(encryptionKey(0));
    const sealed = new SealedStore({ store, sealer, scope: [] });
    for (let rotation = 1; rotation <= 30; rotation++) sealer.rotate(encryptionKey(rotation));
    await sealed.find(name);
    expect(calls).toEqual(['get', 'get', 'get']);
  });
});
