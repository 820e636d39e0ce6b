import { afterEach, describe, expect, it } from '@jest/globals';
import { type ForgetRecord, Forgets, recordMs, writeForget } from '../../src/cache/Forgets.js';
import { LeasedCache } from '../../src/cache/LeasedCache.js';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { SubjectEntries } from '../../src/cache/SubjectEntries.js';
import { Sealer } from '../../src/cache/sealing.js';
import { Secret } from '../../src/config/secret.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { replacePlatform, restorePlatform } from '../support/platform.js';
import { StoreLink } from '../support/StoreLink.js';
import { until } from '../support/until.js';

const who = 'planted-subject';
const dayMs = 24 * recordMs;
const material = (secret: string) => ({ from: 'client-secret', secret: new Secret(secret) }) as const;
const closings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closings.splice(0)) await close();
  restorePlatform();
});

/** Processes over one store, and a clock that all of them read. */
function scene() {
  let clock = 1_000_000;
  const now = () => clock;
  replacePlatform(() => ({ now, monotonicNow: now }));
  const shared = new MemoryStore();
  closings.push(() => shared.close());

  function processWith(...secrets: readonly [string, ...string[]]) {
    const link = new StoreLink(shared);
    const store = link.store;
    const [current, ...previous] = secrets.map(material) as [ReturnType<typeof material>];
    const sealer = new Sealer(current, previous);
    const options = { store, sealer, scope: ['test'] };
    const sealed = new SealedStore(options);
    const entries = new SubjectEntries(store, sealed, (subject) => [['test', subject]]);
    const done: ForgetRecord[] = [];
    const cache = new LeasedCache<string>({
      store: sealed,
      codec: { encode: (value) => value, decode: String },
      ttlMs: () => dayMs,
      kind: 'test',
      maxEntries: 100,
      workMs: 5000,
      mayHaveForgotten: (subject, beganAt) => forgets.mayHaveForgotten(subject, beganAt),
    });
    const forgets: Forgets = new Forgets({
      store: sealed,
      entries,
      keepers: [cache],
      takeUnsettled: () => store.takeUnsettled(),
      isRotating: () => sealer.rings.length > 1,
      onForgotten: (record) => done.push(record),
    });
    const read = async (text: string) =>
      (await cache.read(who, { acceptable: () => true, fetch: async () => text })).value;
    /** Begins to read; resolves once the fetch has begun, with what ends it and gives the answer. */
    const begin = () =>
      new Promise<(text: string) => Promise<string>>((begun) => {
        const fetch = () =>
          new Promise<string>((bring) => {
            begun(async (text) => {
              bring(text);
              return (await answer).value;
            });
          });
        const answer = Promise.resolve(cache.read(who, { acceptable: () => true, fetch }));
      });
    return { link, sealed, entries, forgets, cache, done, read, begin };
  }

  const operator = processWith('key');
  let requests = 0;
  return {
    shared,
    processWith,
    advance: (ms: number) => {
      clock += ms;
    },
    stored: async () => (await operator.entries.list(who)).length,
    forget: async (by = operator, between = async () => {}) => {
      const record = { id: `request-${++requests}`, subject: who, at: clock };
      await writeForget(by.sealed, { ...record, state: 'begun' });
      await between();
      await by.entries.erase(who);
      await writeForget(by.sealed, { ...record, state: 'done' });
    },
  };
}

describe('A process of which another erased a subject', () => {
  it('drops it at the next look, and the next read fetches', async () => {
    const { processWith, forget, stored } = scene();
    const process = processWith('key');
    await process.read('old');
    expect(await stored()).toBe(1);
    await forget();
    expect(await stored()).toBe(0);
    expect(process.cache.peek(who)?.value).toBe('old');
    await process.forgets.look();
    expect(process.cache.peek(who)).toBeUndefined();
    expect(await process.read('new')).toBe('new');
    await process.forgets.look();
    expect(process.cache.peek(who)?.value).toBe('new');
    expect(process.done).toMatchObject([{ id: 'request-1', state: 'done' }]);
  });

  it('drops what it read from the store between the beginning and the end of the erasing', async () => {
    const { processWith, forget } = scene();
    const [first, process] = [processWith('key'), processWith('key')];
    await first.read('old');
    await forget(undefined, async () => {
      await process.forgets.look();
      expect(await process.read('fetched in vain')).toBe('old');
    });
    await process.forgets.look();
    expect(process.cache.peek(who)).toBeUndefined();
  });

  it('keeps nothing of a fetch that began before and ends after it knows, while a new reader fetches anew', async () => {
    const { processWith, forget } = scene();
    const process = processWith('key');
    const finish = await process.begin();
    await forget();
    await process.forgets.look();
    expect(await process.read('new')).toBe('new');
    expect(await finish('old')).toBe('new');
    expect(process.cache.peek(who)?.value).toBe('new');
    expect(await processWith('key').read('fetched in vain')).toBe('new');
  });

  it('keeps nothing of a fetch that began before and ends before it knows', async () => {
    const { processWith, forget, stored } = scene();
    const process = processWith('key');
    const finish = await process.begin();
    await forget();
    expect(await finish('old')).toBe('old');
    expect(await stored()).toBe(0);
    await process.forgets.look();
    expect(process.cache.peek(who)).toBeUndefined();
  });

  it('keeps in the store what was fetched since, also when it learns of the erasing during that fetch', async () => {
    const { processWith, forget, stored } = scene();
    const process = processWith('key');
    await forget();
    const finish = await process.begin();
    await process.forgets.look();
    expect(await finish('new')).toBe('new');
    expect(await stored()).toBe(1);
    expect(await process.read('fetched in vain')).toBe('new');
  });

  it('does not bring back what it fetched while the store was away', async () => {
    const { processWith, forget, stored } = scene();
    const process = processWith('key');
    await process.forgets.look();
    process.link.state = 'down';
    expect(await process.read('old')).toBe('old');
    await process.forgets.look();
    await forget();
    await process.link.restore();
    await until(async () => (await stored()) > 0);
    await process.forgets.look();
    expect(await stored()).toBe(0);
    expect(process.cache.peek(who)).toBeUndefined();
  });

  it.each([
    ['before the store has its writes', false],
    ['before the store has its writes, and cannot read the list just then', true],
  ])('does not bring it back either when it learns of the erasing %s', async (_, looksMeanwhile) => {
    const { processWith, forget, stored } = scene();
    const process = processWith('key');
    const finish = await process.begin();
    await forget();
    await process.forgets.look();
    process.link.state = 'down';
    expect(await finish('old')).toBe('old');
    if (looksMeanwhile) {
      await process.forgets.look();
      expect(process.link.store.degraded).toBe(false);
    }
    await process.link.restore();
    await until(async () => (await stored()) > 0);
    await process.forgets.look();
    expect(await stored()).toBe(0);
  });

  it('drops everything when it did not look for so long that a record may have come and gone', async () => {
    const { processWith, forget, advance } = scene();
    const process = processWith('key');
    await process.read('old');
    await process.forgets.look();
    await forget();
    advance(recordMs + 1);
    await process.forgets.look();
    expect(process.cache.peek(who)).toBeUndefined();
  });

  it('writes nothing of a fetch that lasted longer than the record of the erasing', async () => {
    const { processWith, forget, advance, stored } = scene();
    const process = processWith('key');
    const finish = await process.begin();
    await forget();
    advance(recordMs + 1);
    expect(await finish('old')).toBe('old');
    expect(await stored()).toBe(0);
  });

  it('erases what was sealed with a key that the one who erased did not know', async () => {
    const { processWith, forget, shared } = scene();
    const process = processWith('key', 'older key');
    await process.read('old');
    await forget();
    expect((await shared.list('')).length).toBeGreaterThan(1);
    await process.forgets.look();
    expect(await process.entries.list(who)).toEqual([]);
    expect(await processWith('older key').read('new')).toBe('new');
  });

  it('drops what was read again while it was erasing that', async () => {
    const { processWith, forget } = scene();
    const process = processWith('key', 'older key');
    await process.read('old');
    await forget();
    let isLooking = true;
    const looking = process.forgets.look().finally(() => {
      isLooking = false;
    });
    while (isLooking) await process.read('new');
    await looking;
    expect(await process.read('new')).toBe('new');
    expect(await processWith('key').read('new')).toBe('new');
  });

  it('learns it from a list under any key that it shares with the one who erased', async () => {
    const { processWith, forget } = scene();
    const process = processWith('older key');
    await process.read('old');
    await forget(processWith('key', 'older key'));
    await process.forgets.look();
    expect(process.cache.peek(who)).toBeUndefined();
    expect(await process.entries.list(who)).toEqual([]);
  });

  it('learns it from the list under an old key when there is one under the current key as well', async () => {
    const { processWith, forget } = scene();
    const process = processWith('key', 'older key');
    await process.read('old');
    await forget(processWith('older key'));
    await writeForget(processWith('key').sealed, { id: 'another', state: 'done', subject: 'another', at: 1_000_000 });
    await process.forgets.look();
    expect(process.done.map(({ id }) => id).sort()).toEqual(['another', 'request-1']);
    expect(process.cache.peek(who)).toBeUndefined();
  });

  it('cannot read whom the list is about without the key', async () => {
    const { forget, shared } = scene();
    await forget();
    const keys = await shared.list('');
    expect(keys).toHaveLength(1);
    const bytes = await Promise.all(keys.map((key) => shared.get(key)));
    expect(Buffer.concat(bytes as Buffer[]).includes(who)).toBe(false);
  });
});

describe('The list of what was forgotten', () => {
  it('holds all of those who write at once', async () => {
    const { processWith } = scene();
    const writers = Array.from({ length: 5 }, () => processWith('key'));
    await Promise.all(
      writers.map(({ sealed }, n) =>
        writeForget(sealed, { id: `${n}`, state: 'done', subject: `${n}`, at: 1_000_000 }),
      ),
    );
    const process = processWith('key');
    await process.forgets.look();
    expect(process.done.map(({ id }) => id).sort()).toEqual(['0', '1', '2', '3', '4']);
  });

  it('says "everybody" when it would be too long', async () => {
    const { processWith } = scene();
    const [writer, process] = [processWith('key'), processWith('key')];
    await process.read('old');
    const records = Array.from({ length: 1000 }, (_, n) => ({
      id: `${n}`,
      state: 'done',
      subject: `${n}`,
      at: 1_000_000,
    }));
    await writer.sealed.set(['forgets'], { records }, recordMs);
    await process.forgets.look();
    expect(process.cache.peek(who)?.value).toBe('old');
    await writeForget(writer.sealed, { id: 'one more', state: 'done', subject: 'another', at: 1_000_000 });
    await process.forgets.look();
    expect(process.cache.peek(who)).toBeUndefined();
    expect(process.done.slice(1000)).toEqual([
      expect.not.objectContaining({ subject: expect.anything() }),
      expect.objectContaining({ id: 'one more' }),
    ]);
  });
});
