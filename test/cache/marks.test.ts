import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SealedStore, scopeOf } from '../../src/cache/SealedStore.js';
import { type KeyMaterial, Sealer } from '../../src/cache/sealing.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import type { Store } from '../../src/stores/Store.js';
import { restorePlatform } from '../support/platform.js';
import { counted, encryptionKey } from '../support/sealed.js';
import { VirtualTime } from '../support/VirtualTime.js';

const [oldKey, newKey] = [encryptionKey(1), encryptionKey(2)];
const name = ['some', 'mark'];
const minute = 60_000;
const hour = 3_600_000;
/** How far two clocks may be apart before a mark counts as absent. */
const skewMs = 10_000;

let time: VirtualTime;
let store: MemoryStore;
/** Processes over one store. */
let one: SealedStore;
let other: SealedStore;
beforeEach(() => {
  time = new VirtualTime(1_000_000);
  time.now += minute;
  time.install();
  store = new MemoryStore();
  [one, other] = [processWith(), processWith()];
});

afterEach(restorePlatform);

/** Lets `ms` milliseconds go by, once what is under way waits for them. */
async function pass(ms: number): Promise<void> {
  await new Promise(setImmediate);
  await time.runUntil(time.now + ms);
  await new Promise(setImmediate);
}

function processWith({ keys = [oldKey], over = store as Store } = {}): SealedStore {
  const [current, ...previous] = keys as [KeyMaterial];
  return new SealedStore({ store: over, sealer: new Sealer(current, previous), scope: [] });
}

/** A process whose clock is that far ahead sets a mark for a minute. */
async function setAhead(aheadMs: number, text: string): Promise<void> {
  time.now += aheadMs;
  await processWith().setMark(name, text, minute);
  time.now -= aheadMs;
}

/** `store` with one operation changed. */
function changed(change: Partial<Store>): Store {
  return new Proxy(store as Store, {
    get: (target, operation) => {
      const value = Reflect.get(change, operation) ?? Reflect.get(target, operation);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** The store loses what it has under the name. */
async function lose(sealed = one): Promise<void> {
  for (const each of sealed.stores) {
    const key = each.keyOf(name);
    const bytes = await store.get(key);
    if (bytes) await store.compareAndDelete(key, bytes);
  }
}

describe('A mark', () => {
  it('is seen by every process until its time is over', async () => {
    await one.setMark(name, 'wait', minute);
    time.now += minute - 1;
    expect([await one.mark(name), await other.mark(name)]).toEqual(['wait', 'wait']);
    time.now += 1;
    expect([await one.mark(name), await other.mark(name)]).toEqual([undefined, undefined]);
  });

  it('holds for the process that wrote it, for as long, also when the store loses it', async () => {
    await one.setMark(name, 'wait', minute);
    await lose();
    expect([await one.mark(name), await other.mark(name)]).toEqual(['wait', undefined]);
    time.now += minute - 1;
    expect(await one.mark(name)).toBe('wait');
    time.now += 1;
    expect(await one.mark(name)).toBeUndefined();
    time.now -= 1;
    expect(await one.mark(name)).toBeUndefined(); // it was let go of
  });

  it('of another name is another mark', async () => {
    await one.setMark(name, 'wait', minute);
    expect(await one.mark(['another'])).toBeUndefined();
  });

  it('is absent when a clock further ahead than ten seconds wrote it', async () => {
    await setAhead(skewMs, 'of a tolerable clock');
    expect(await one.mark(name)).toBe('of a tolerable clock');
    await setAhead(skewMs + 1, 'of a wrong clock');
    expect(await one.mark(name)).toBeUndefined();
  });

  it('of this process counts when one with a wrong clock has written over it', async () => {
    await one.setMark(name, 'mine', minute);
    await setAhead(hour, 'of a wrong clock');
    expect(await one.mark(name)).toBe('mine');
  });
});

describe('A mark that is prolonged', () => {
  it('is written when there is none, and over a shorter one, never over one that lasts as long', async () => {
    await one.prolongMark(name, 'first', minute);
    await other.prolongMark(name, 'shorter', minute - 1);
    expect(await processWith().mark(name)).toBe('first');
    await other.prolongMark(name, 'as long', minute);
    expect(await processWith().mark(name)).toBe('first');
    await other.prolongMark(name, 'longer', minute + 1);
    expect(await processWith().mark(name)).toBe('longer');
    time.now += minute;
    expect(await processWith().mark(name)).toBe('longer');
    time.now += 1;
    expect(await processWith().mark(name)).toBeUndefined();
  });

  it('costs nothing when this process has written one that lasts as long', async () => {
    const { store: over, calls } = counted(store);
    const process = processWith({ over });
    await process.prolongMark(name, 'wait', minute);
    expect(calls.splice(0)).toEqual(['acquire', 'settle']);
    await process.prolongMark(name, 'as long', minute);
    expect(calls).toEqual([]);
    await process.prolongMark(name, 'longer', minute + 1);
    expect(calls).toEqual(['acquire', 'acquire', 'settle']);
  });

  it('is written over one of a wrong clock', async () => {
    await setAhead(hour, 'of a wrong clock');
    await one.prolongMark(name, 'mine', minute);
    expect(await other.mark(name)).toBe('mine');
  });

  it('waits while another process writes one, is written when that is done, and ends when it should', async () => {
    await other.acquire(name, 'other', hour);
    const { store: over, calls } = counted(store);
    const writing = processWith({ over }).prolongMark(name, 'wait', minute);
    await pass(50);
    expect(calls).toEqual(['acquire']);
    await other.release(name, 'other');
    await pass(51);
    await writing;
    expect(calls).toEqual(['acquire', 'acquire', 'settle']);
    time.now += minute - 102;
    expect(await other.mark(name)).toBe('wait');
    time.now += 1;
    expect(await other.mark(name)).toBeUndefined();
  });

  it('is written without the lease after twenty tries of a tenth of a second', async () => {
    await other.acquire(name, 'a process that stands still', hour);
    const { store: over, calls } = counted(store);
    const writing = processWith({ over }).prolongMark(name, 'wait', minute);
    await pass(1999);
    expect(await other.mark(name)).toBeUndefined();
    await pass(2);
    await writing;
    expect(await other.mark(name)).toBe('wait');
    expect(calls.filter((call) => call === 'acquire')).toHaveLength(20);
    expect(calls.filter((call) => call === 'set')).toHaveLength(1);
  });

  it('gives way to a longer one that this process begins to write meanwhile', async () => {
    await other.acquire(name, 'other', hour);
    const { store: over, calls } = counted(store);
    const process = processWith({ over });
    const shorter = process.prolongMark(name, 'shorter', minute);
    await pass(10);
    const longer = process.prolongMark(name, 'longer', 2 * minute);
    await pass(300);
    await shorter; // it has nothing more to write
    const tries = calls.filter((call) => call === 'acquire').length;
    expect(tries).toBeLessThan(7);
    await pass(3000);
    await longer;
    expect(calls.filter((call) => call === 'set')).toHaveLength(1);
    expect(await other.mark(name)).toBe('longer');
  });

  it('is written again when the lease was lost before it was written', async () => {
    let lost = 0;
    const over = changed({
      settle: async (key, owner, entry) => {
        if (lost++ === 0) await store.compareAndDelete(`${key}:lease`, owner);
        return store.settle(key, owner, entry);
      },
    });
    await processWith({ over }).prolongMark(name, 'wait', minute);
    expect(lost).toBe(2);
    expect(await other.mark(name)).toBe('wait');
  });
});

describe('A count of the store', () => {
  const counting = (count: unknown) =>
    processWith({ over: changed({ increment: async () => count as number }) }).increment(name, 5, minute, 10);

  it.each([5, 7, 10])('of %p is believed, when 5 were added and there are at most 10', async (count) => {
    expect(await counting(count)).toBe(count);
  });

  it.each([4, 11, 5.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60, '7', undefined])(
    'of %p is not',
    async (count) => {
      await expect(counting(count)).rejects.toMatchObject({ message: 'The store gave a count that cannot be true.' });
    },
  );

  it('has to be possible under every key', async () => {
    const counts = [7, 99];
    const over = changed({ increment: async () => counts.pop() as number });
    const process = processWith({ keys: [newKey, oldKey], over });
    await expect(process.increment(name, 5, minute, 10)).rejects.toThrow('cannot be true');
  });
});

describe('What is sealed anew under the current key', () => {
  const [before, during, after] = [{ keys: [oldKey] }, { keys: [newKey, oldKey] }, { keys: [newKey] }];

  it('is kept by the store for as long as the entry it was made of', async () => {
    await processWith(before).set(name, 'value', minute);
    time.now += 40_000;
    await processWith(during).find(name);
    const [current] = processWith(after).stores;
    const key = current?.keyOf(name) as string;
    time.now += 19_999;
    expect(await store.get(key)).toBeDefined();
    time.now += 1;
    expect(await store.get(key)).toBeUndefined();
  });

  it('is taken back when the entry was erased meanwhile', async () => {
    await processWith(before).set(name, 'value', minute);
    const over = changed({
      claim: async (key, bytes, ttlMs) => {
        await lose(processWith(before));
        return store.claim(key, bytes, ttlMs);
      },
    });
    await processWith({ ...during, over }).find(name);
    expect(await processWith(after).look(name)).toBeUndefined();
  });

  it('is no reason to fail when it cannot be written', async () => {
    await processWith(before).set(name, 'value', minute);
    const over = changed({ claim: async () => Promise.reject(new Error('away')) });
    expect(await processWith({ ...during, over }).find(name)).toMatchObject({ value: 'value' });
  });

  it('is told apart when all keys are looked under', async () => {
    expect(await processWith(during).lookUnderAllKeys(name)).toEqual([]);
    await processWith(before).set(name, 'old', minute);
    expect(await processWith(during).lookUnderAllKeys(name)).toEqual(['old']);
    await processWith(after).set(name, 'new', minute);
    expect(await processWith(during).lookUnderAllKeys(name)).toEqual(['new', 'old']);
  });
});

describe('The failure of a lease holder', () => {
  it.each(['', 'not a name!', '!me', 'me!', 'a'.repeat(65)])(
    'is not looked for when its owner is %j',
    async (owner) => {
      const { store: over, calls } = counted(store);
      expect(await processWith({ over }).failureOf(name, owner)).toBeUndefined();
      expect(calls).toEqual([]);
    },
  );

  it('is found when its owner has a name of 64 letters, digits and dashes', async () => {
    const owner = `${'a-_0'.repeat(16)}`;
    await one.acquire(name, owner, minute);
    await one.fail(name, 'why', minute, owner);
    expect(await other.failureOf(name, owner)).toBe('why');
  });
});

it('The scope of what a client reads is the address, the client and the version', () => {
  expect(scopeOf('https://service', 'client', 'v1')).toEqual(['https://service', 'client', 'v1']);
});
