import { afterEach, describe, expect, it } from '@jest/globals';
import type { EntryName } from '../../src/cache/OneKeyStore.js';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { SubjectEntries } from '../../src/cache/SubjectEntries.js';
import { type KeyRing, Sealer } from '../../src/cache/sealing.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import type { Store } from '../../src/stores/Store.js';
import { restorePlatform } from '../support/platform.js';
import { encryptionKey } from '../support/sealed.js';
import { VirtualTime } from '../support/VirtualTime.js';

const [oldKey, newKey] = [encryptionKey(1), encryptionKey(2)];
const minute = 60_000;
const who = 'somebody';

/** A store that does `changes` in place of what `store` does. */
const altered = (store: Store, changes: Partial<Store>): Store =>
  new Proxy(store, {
    get: (target, method) => {
      const value = Reflect.get(changes, method) ?? Reflect.get(target, method);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

describe.each([
  ['one key', [newKey]],
  ['two keys', [newKey, oldKey]],
] as const)('With %s, what the store holds about a subject', (_, [current, ...previous]) => {
  const sealer = new Sealer(current, previous);
  const { rings } = sealer;

  afterEach(restorePlatform);

  function scene(known: readonly string[] = ['known']) {
    new VirtualTime(1_000_000).install();
    const memory = new MemoryStore();
    const sealed = new SealedStore({ store: memory, sealer, scope: ['scope'] });
    const entriesOver = (store: Store) =>
      new SubjectEntries(store, sealed, (subject) => known.map((each) => [each, subject]));
    const entryWithLease = async (name: EntryName, value: string) => {
      await sealed.acquire(name, 'holder', minute);
      await sealed.set(name, value, minute);
    };
    const failure = async (name: EntryName) => {
      await sealed.acquire(name, 'failed', minute);
      await sealed.fail(name, 'why', minute, 'failed');
    };
    /** Something of every kind: per key, six. */
    const plant = async (subject: string) => {
      await entryWithLease(['known', subject], 'value of a known name');
      await failure({ subject, parts: ['some', 'thing'] });
      await entryWithLease({ subject, parts: ['some', 'thing'] }, 'value of another name');
      await sealed.acquire({ subject, parts: ['being read'] }, 'reader', minute);
    };
    return { memory, sealed, entriesOver, entries: entriesOver(memory), entryWithLease, failure, plant };
  }

  const knownKey = (ring: KeyRing, subject = who, name = 'known') => ring.name(['scope', name, subject]);
  const keyUnder = (ring: KeyRing, ...parts: string[]) => `${ring.name(['scope', 'subject', who])}.${ring.name(parts)}`;

  it('is told by its keys from what is about another subject', async () => {
    const { entries, memory, plant } = scene();
    for (const subject of [who, 'another', 'a third']) await plant(subject);
    const isAbout = entries.keysAbout([who, 'another']);
    const found = (await memory.list('')).filter(isAbout);
    const listed = [...(await entries.list(who)), ...(await entries.list('another'))].map(({ key }) => key);
    expect(new Set(found)).toEqual(new Set(listed));
    expect((await memory.list('')).some((key) => !isAbout(key))).toBe(true);
    expect((await memory.list('')).filter(entries.keysAbout([]))).toEqual([]);
  });

  it('is listed by part, key and value, and nothing of another subject', async () => {
    const { entries, plant } = scene();
    await plant('another');
    expect(await entries.list(who)).toEqual([]);
    await plant(who);
    const listed = await entries.list(who);
    const expected = rings.flatMap((ring) => [
      { key: knownKey(ring), part: 'entry', value: 'value of a known name' },
      { key: `${knownKey(ring)}:lease`, part: 'lease', value: undefined },
      { key: keyUnder(ring, 'some', 'thing'), part: 'entry', value: 'value of another name' },
      { key: `${keyUnder(ring, 'some', 'thing')}:lease`, part: 'lease', value: undefined },
      { key: `${keyUnder(ring, 'some', 'thing')}:failure:failed`, part: 'failure', value: 'why' },
      { key: `${keyUnder(ring, 'being read')}:lease`, part: 'lease', value: undefined },
    ]);
    expect(listed).toHaveLength(expected.length);
    expect(listed.map((each) => ({ key: each.key, part: each.part, value: each.found.value }))).toEqual(
      expect.arrayContaining(expected),
    );
    expect(listed.slice(0, 2).map((each) => each.key)).toEqual([knownKey(sealer.current), expected[1]?.key]);
    expect(listed[1]?.found.bytes).toEqual(Buffer.from('holder'));
    expect(listed[0]?.found.expiresAt).toBe(1_000_000 + minute);
  });

  it('has its known names under every key, the current one first', () => {
    expect(scene().entries.keysOf(['known', who])).toEqual(rings.map((ring) => knownKey(ring)));
  });

  it('is erased and counted one by one, and other subjects stay', async () => {
    const { memory, entries, plant } = scene();
    await plant('another');
    const others = await memory.list('');
    expect(others).toHaveLength(6 * rings.length);
    await plant(who);
    expect(await entries.erase(who)).toBe(6 * rings.length);
    expect((await memory.list('')).toSorted()).toEqual(others.toSorted());
    expect(await entries.list(who)).toEqual([]);
    expect(await entries.erase(who)).toBe(0);
  });

  it('counts as nothing when there is nothing, and as one per key when there is one thing', async () => {
    const { memory, sealed, entries, failure } = scene();
    expect(await entries.erase(who)).toBe(0);
    const name = { subject: who, parts: ['some', 'thing'] };
    const single: readonly (() => Promise<unknown>)[] = [
      () => failure(name),
      () => sealed.set(name, 'value', minute),
      () => sealed.acquire(name, 'me', minute),
      () => sealed.set(['known', who], 'value', minute),
      () => sealed.acquire(['known', who], 'me', minute),
    ];
    for (const plantOne of single) {
      await plantOne();
      expect(await entries.erase(who)).toBe(rings.length);
      expect(await memory.list('')).toEqual([]);
    }
  });

  it('is searched twice, so that what was written during the first search is erased too', async () => {
    const { memory, entriesOver } = scene();
    const searched: string[] = [];
    const store = altered(memory, {
      list: async (prefix) => {
        const found = await memory.list(prefix);
        if (!searched.includes(prefix)) {
          for (const late of ['', ':lease', ':failure:me']) {
            await memory.set(`${prefix}late${late}`, Buffer.from('late'), minute);
          }
        }
        searched.push(prefix);
        return found;
      },
    });
    expect(await entriesOver(store).erase(who)).toBe(3 * rings.length);
    expect(await memory.list('')).toEqual([]);
    const prefixes = rings.map((ring) => `${ring.name(['scope', 'subject', who])}.`);
    expect(searched).toEqual([...prefixes, ...prefixes]);
  });

  it('keeps what was read anew under a known name while the rest is searched', async () => {
    const { memory, sealed, entriesOver } = scene();
    await sealed.set(['known', who], 'old', minute);
    const store = altered(memory, {
      list: async (prefix) => {
        await sealed.set(['known', who], 'new', minute);
        return memory.list(prefix);
      },
    });
    expect(await entriesOver(store).erase(who)).toBe(rings.length);
    expect(await sealed.look(['known', who])).toBe('new');
  });

  it('is erased as well when it is written over meanwhile, and counted once', async () => {
    const { memory, entriesOver, plant } = scene();
    const tried: string[] = [];
    const store = altered(memory, {
      compareAndDelete: async (at, expected) => {
        if (!tried.includes(at)) await memory.set(at, Buffer.from('written over it'), minute);
        tried.push(at);
        return memory.compareAndDelete(at, expected);
      },
    });
    await plant(who);
    expect(await entriesOver(store).erase(who)).toBe(6 * rings.length);
    expect(await memory.list('')).toEqual([]);
    expect(tried).toHaveLength(2 * 6 * rings.length);
  });

  it('is given up after a hundred tries when it is always written anew, and counts as erased', async () => {
    const { memory, sealed, entriesOver } = scene();
    const tried: string[] = [];
    const read: string[] = [];
    const store = altered(memory, {
      get: (at) => {
        read.push(at);
        return memory.get(at);
      },
      compareAndDelete: async (at, expected) => {
        tried.push(at);
        if (tried.length > 500) throw new Error('It is never given up.');
        await memory.set(at, Buffer.from(`${tried.length}`), minute);
        return memory.compareAndDelete(at, expected);
      },
    });
    await sealed.set(['known', who], 'value', minute);
    expect(await entriesOver(store).erase(who)).toBe(rings.length);
    for (const ring of rings) {
      expect(tried.filter((at) => at === knownKey(ring))).toHaveLength(100);
      expect(read.filter((at) => at === knownKey(ring))).toHaveLength(100);
    }
    expect(tried).toHaveLength(100 * rings.length);
  });

  it.each([
    ['as', (keys: readonly string[]) => keys],
    ['the other way round than', (keys: readonly string[]) => keys.toReversed()],
  ])(
    'goes in order (known names, oldest key first; leases before entries), listed %s it is stored',
    async (_, order) => {
      const { memory, entriesOver, entryWithLease, failure } = scene(['known', 'also known']);
      const deleted: string[] = [];
      const store = altered(memory, {
        list: async (prefix) => order(await memory.list(prefix)),
        compareAndDelete: (at, expected) => {
          deleted.push(at);
          return memory.compareAndDelete(at, expected);
        },
      });
      const name = { subject: who, parts: ['some', 'thing'] };
      await failure(name);
      await entryWithLease(name, 'value');
      for (const known of ['known', 'also known']) await entryWithLease([known, who], 'value');
      await entriesOver(store).erase(who);
      const oldestFirst = rings.toReversed();
      expect(deleted).toEqual([
        ...['known', 'also known'].flatMap((known) =>
          oldestFirst.flatMap((ring) => [`${knownKey(ring, who, known)}:lease`, knownKey(ring, who, known)]),
        ),
        ...rings.flatMap((ring) => {
          const base = keyUnder(ring, 'some', 'thing');
          return [`${base}:lease`, base, `${base}:failure:failed`];
        }),
      ]);
    },
  );

  it('is not taken for erased when the store fails', async () => {
    const { memory, entriesOver, plant } = scene();
    await plant(who);
    const fail = () => Promise.reject(new Error('away'));
    for (const changes of [{ get: fail }, { list: fail }, { compareAndDelete: fail }]) {
      await expect(entriesOver(altered(memory, changes)).erase(who)).rejects.toThrow('away');
    }
  });
});
