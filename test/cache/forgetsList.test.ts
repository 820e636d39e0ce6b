import { afterEach, describe, expect, it } from '@jest/globals';
import { type ForgetRecord, Forgets, recordMs, writeForget } from '../../src/cache/Forgets.js';
import { leaseMs } from '../../src/cache/keepLease.js';
import { SealedStore } from '../../src/cache/SealedStore.js';
import { SubjectEntries } from '../../src/cache/SubjectEntries.js';
import { type KeyMaterial, Sealer } from '../../src/cache/sealing.js';
import { MemoryStore } from '../../src/stores/MemoryStore.js';
import { leaseKeyOf, type Store } from '../../src/stores/Store.js';
import { restorePlatform } from '../support/platform.js';
import { encryptionKey } from '../support/sealed.js';
import { VirtualTime } from '../support/VirtualTime.js';

const [oldKey, newKey] = [encryptionKey(1), encryptionKey(2)];
const listName = ['forgets'];
const startsAt = 100_000_000;
const who = 'somebody';
const minute = 60_000;

/** Everything that could go on without time has done so. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

afterEach(restorePlatform);

/**
 * A process over a store, in virtual time. `log` tells what it forgot and erased, in order; `changes` are what the store does
 * in place of what it would.
 */
function scene(...keys: readonly KeyMaterial[]) {
  const [current = newKey, ...previous] = keys;
  const time = new VirtualTime(startsAt);
  time.install();
  const memory = new MemoryStore();
  const changes: Partial<Store> = {};
  const log: string[] = [];
  const calls: { readonly method: string; readonly args: readonly unknown[] }[] = [];
  const store = new Proxy<Store>(memory, {
    get: (_, method) => {
      const value = Reflect.get(changes, method) ?? Reflect.get(memory, method);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        calls.push({ method: String(method), args });
        if (calls.length > 20_000) throw new Error('This would never end.');
        return value.apply(memory, args);
      };
    },
  });
  const sealed = new SealedStore({ store, sealer: new Sealer(current, previous), scope: ['scope'] });
  const entries = new SubjectEntries(store, sealed, (subject) => [['known', subject]]);
  const said = { isUnsettled: (): boolean => false, isRotating: false };
  const done: ForgetRecord[] = [];
  const keeperOf = (name: string) => ({
    forget: (subject: string | undefined) => void log.push(`${name} forgets ${subject ?? 'everybody'}`),
  });
  const forgetsOf = (...names: string[]) =>
    new Forgets({
      store: sealed,
      entries,
      keepers: names.map(keeperOf),
      takeUnsettled: () => said.isUnsettled(),
      isRotating: () => said.isRotating,
      onForgotten: (record) => done.push(record),
    });
  /** A process that knows one of the keys. */
  const withKey = (one: KeyMaterial) => new SealedStore({ store: memory, sealer: new Sealer(one), scope: ['scope'] });
  return {
    time,
    memory,
    changes,
    log,
    calls,
    callsOf: (method: keyof Store) => calls.filter((call) => call.method === method),
    sealed,
    said,
    done,
    forgetsOf,
    withKey,
    forgets: forgetsOf('it'),
    takeLog: () => log.splice(0),
    write: (record: ForgetRecord) => writeForget(sealed, record),
    setList: (value: unknown) => sealed.set(listName, value, recordMs),
    list: () => sealed.look(listName) as Promise<{ records: ForgetRecord[] } | undefined>,
    plant: () => sealed.set(['known', who], 'value', 24 * recordMs),
    planted: () => sealed.look(['known', who]),
    erases: () => calls.filter(({ method }) => method === 'list').length,
  };
}

const begun = (id: string, subject: string | undefined = who, at = startsAt): ForgetRecord =>
  subject === undefined ? { id, state: 'begun', at } : { id, state: 'begun', subject, at };
const done = (id: string, subject: string | undefined = who, at = startsAt): ForgetRecord => ({
  ...begun(id, subject, at),
  state: 'done',
});
const ofEverybody = (id: string, state: ForgetRecord['state']): ForgetRecord => ({ id, state, at: startsAt });

describe('A record that is put on the list', () => {
  it('waits while another process writes, looks ten times a second, and goes on when that one is done', async () => {
    const { memory, withKey, write, callsOf, list, time } = scene();
    const other = withKey(newKey);
    await other.acquire(listName, 'other', minute);
    const writing = write(begun('mine'));
    await settled();
    await time.runUntil(time.now + 550);
    expect(callsOf('acquire')).toHaveLength(6);
    expect(await memory.list('')).toHaveLength(1);
    await other.release(listName, 'other');
    await time.runUntil(time.now + 100);
    await writing;
    expect(callsOf('acquire')).toHaveLength(7);
    expect(await list()).toEqual({ records: [begun('mine')] });
    expect(await other.leaseOwner(listName)).toBeUndefined();
  });

  it('is written again, under a turn of its own, when its turn was over before it was written', async () => {
    const { memory, changes, write, callsOf, list } = scene();
    await write(begun('first'));
    let isOver = false;
    changes.settle = async (at, owner, entry) => {
      if (!isOver) await memory.compareAndDelete(leaseKeyOf(at), owner);
      isOver = true;
      return memory.settle(at, owner, entry);
    };
    await write(begun('second'));
    expect(callsOf('settle')).toHaveLength(3);
    expect(await list()).toEqual({ records: [begun('first'), begun('second')] });
    const owners = callsOf('settle').map(({ args }) => String(args[1]));
    expect(new Set(owners).size).toBe(3);
  });

  it('takes the turn for three seconds at most', async () => {
    const { write, callsOf } = scene();
    await write(begun('mine'));
    expect(callsOf('acquire').map(({ args }) => args[2])).toEqual([leaseMs]);
  });

  it('asks for its turn once when there is no list, and once more when there is one', async () => {
    const { write, callsOf } = scene();
    await write(begun('first'));
    expect(callsOf('acquire')).toHaveLength(1);
    await write(begun('second'));
    expect(callsOf('acquire')).toHaveLength(3);
  });

  it('takes the place of the record with its id, and of no other', async () => {
    const { write, list } = scene();
    await write(begun('other'));
    await write(begun('mine'));
    await write(done('mine'));
    expect(await list()).toEqual({ records: [begun('other'), done('mine')] });
  });

  it('is on the list for an hour', async () => {
    const { write, list, time, memory } = scene();
    await write(begun('mine'));
    time.now += recordMs - 1;
    expect(await list()).toEqual({ records: [begun('mine')] });
    time.now += 1;
    expect(await list()).toBeUndefined();
    expect(await memory.list('')).toEqual([]);
  });

  it('makes those leave that are an hour away from it, before or after', async () => {
    const { write, setList, list } = scene();
    const at = (id: string, awayMs: number) => done(id, who, startsAt + awayMs);
    const stay = [at('nearly an hour ago', 1 - recordMs), at('nearly an hour ahead', recordMs - 1)];
    const leave = [at('an hour ago', -recordMs), at('an hour ahead', recordMs), at('long ago', -9 * recordMs)];
    await setList({ records: [...leave, ...stay] });
    await write(begun('mine'));
    expect(await list()).toEqual({ records: [...stay, begun('mine')] });
  });

  it('makes the list say "everybody" when it would be the 1001st, not before', async () => {
    const { write, setList, list } = scene();
    const records = Array.from({ length: 999 }, (_, n) => done(`${n}`, `${n}`));
    await setList({ records });
    await write(begun('thousandth'));
    expect(await list()).toEqual({ records: [...records, begun('thousandth')] });
    const last = begun('last', 'another', startsAt + 5);
    await write(last);
    expect(await list()).toEqual({
      records: [{ id: expect.any(String), state: 'begun', at: startsAt + 5 }, last],
    });
    expect((await list())?.records[0]?.id).not.toBe('last');
  });

  it('does not count those that leave towards the longest list', async () => {
    const { write, setList, list } = scene();
    const records = Array.from({ length: 999 }, (_, n) => done(`${n}`, `${n}`));
    await setList({ records: [...records, begun('mine'), done('long ago', who, startsAt - recordMs)] });
    await write(done('mine'));
    expect(await list()).toEqual({ records: [...records, done('mine')] });
  });

  it('joins what was written under either key, each record once', async () => {
    const { sealed, write, withKey } = scene(newKey, oldKey);
    await write(begun('both'));
    await writeForget(withKey(oldKey), done('old'));
    await writeForget(withKey(newKey), done('new'));
    await write(begun('mine'));
    const expected = [begun('both'), done('new'), done('old'), begun('mine')];
    for (const list of await sealed.lookUnderAllKeys(listName)) expect(list).toEqual({ records: expected });
    for (const one of [oldKey, newKey]) expect(await withKey(one).look(listName)).toEqual({ records: expected });
  });
});

describe.each([
  ['text', 'nonsense'],
  ['nothing', null],
  ['a number in place of records', { records: 1 }],
  ['a record without a time', { records: [{ id: 'damaged', state: 'done', subject: who }] }],
  ['a record in an unknown state', { records: [{ ...begun('damaged'), state: 'unknown' }] }],
])('A damaged list: %s', (_, damaged) => {
  it('counts as empty', async () => {
    const { setList, list, write, forgets, log, done } = scene();
    await setList(damaged);
    await forgets.look();
    expect(log).toEqual([]);
    expect(done).toEqual([]);
    expect(await forgets.mayHaveForgotten(who, startsAt)).toBe(false);
    await write(begun('mine'));
    expect(await list()).toEqual({ records: [begun('mine')] });
  });
});

it('A list that does not open counts as empty, beside one under another key that does', async () => {
  const { memory, sealed, withKey, forgets, takeLog, write } = scene(newKey, oldKey);
  await writeForget(withKey(oldKey), begun('old'));
  const [newList] = sealed.stores.map((store) => store.keyOf(listName));
  await memory.set(newList as string, Buffer.from('garbage'), minute);
  await forgets.look();
  expect(takeLog()).toEqual(['it forgets somebody']);
  await write(begun('mine'));
  expect(await withKey(newKey).look(listName)).toEqual({ records: [begun('old'), begun('mine')] });
});

describe('A look at the list', () => {
  it('forgets each new subject once, in all that holds something, and erases nothing when it need not', async () => {
    const { forgetsOf, setList, plant, planted, takeLog, erases } = scene();
    const forgets = forgetsOf('one', 'two');
    await plant();
    await setList({ records: [begun('1'), begun('2', 'another')] });
    await forgets.look();
    expect(takeLog()).toEqual([
      'one forgets somebody',
      'two forgets somebody',
      'one forgets another',
      'two forgets another',
    ]);
    await forgets.look();
    expect(takeLog()).toEqual([]);
    expect(erases()).toBe(0);
    expect(await planted()).toBe('value');
  });

  it('forgets a subject when its erasing begins and again when it is done, and tells only of the latter, once', async () => {
    const { forgets, write, takeLog, done: told } = scene();
    await write(begun('1'));
    await forgets.look();
    expect(takeLog()).toEqual(['it forgets somebody']);
    expect(told).toEqual([]);
    await write(done('1'));
    await forgets.look();
    expect(takeLog()).toEqual(['it forgets somebody']);
    await forgets.look();
    expect(takeLog()).toEqual([]);
    expect(told).toEqual([done('1')]);
  });

  it('erases a new subject while keys are rotated, and forgets it before and after', async () => {
    const { forgets, setList, plant, planted, takeLog, log, said, changes, memory, done: told } = scene();
    changes.compareAndDelete = (at, expected) => {
      log.push('erased');
      return memory.compareAndDelete(at, expected);
    };
    said.isRotating = true;
    await plant();
    await setList({ records: [done('1')] });
    await forgets.look();
    expect(takeLog()).toEqual(['it forgets somebody', 'erased', 'it forgets somebody']);
    expect(await planted()).toBeUndefined();
    expect(told).toEqual([done('1')]);
    await plant();
    await forgets.look();
    expect(takeLog()).toEqual([]);
    expect(await planted()).toBe('value');
    expect(told).toHaveLength(1);
  });

  it('forgets a new subject twice while keys are rotated, also when there was nothing to erase', async () => {
    const { forgets, setList, takeLog, said } = scene();
    said.isRotating = true;
    await setList({ records: [begun('1')] });
    await forgets.look();
    expect(takeLog()).toEqual(['it forgets somebody', 'it forgets somebody']);
  });

  it('erases a new subject and forgets it twice after the store did not answer', async () => {
    const { forgets, setList, plant, planted, takeLog, said } = scene();
    said.isUnsettled = () => true;
    await plant();
    await setList({ records: [begun('1')] });
    await forgets.look();
    expect(takeLog()).toEqual(['it forgets somebody', 'it forgets somebody']);
    expect(await planted()).toBeUndefined();
  });

  it('erases anew what late writes brought back after the store did not answer, and forgets it when there was any', async () => {
    const { forgets, setList, plant, planted, takeLog, said, erases } = scene();
    await setList({ records: [done('1')] });
    await forgets.look();
    takeLog();
    said.isUnsettled = () => true;
    await forgets.look();
    expect(erases()).toBe(2);
    expect(takeLog()).toEqual([]);
    await plant();
    await forgets.look();
    expect(takeLog()).toEqual(['it forgets somebody']);
    expect(await planted()).toBeUndefined();
    expect(erases()).toBe(4);
  });

  it('asks before and after whether the store answered, and when it did not, the next look erases', async () => {
    const { forgets, setList, plant, planted, said, done: told } = scene();
    await setList({ records: [done('1')] });
    const answers = [false, true, true, true, false, false, false, false];
    said.isUnsettled = () => answers.shift() === true;
    const isErased = async () => {
      await plant();
      await forgets.look();
      return (await planted()) === undefined;
    };
    expect(await isErased()).toBe(false); // nothing was wrong until it had read the list
    expect(await isErased()).toBe(true);
    expect(answers).toHaveLength(4);
    expect(await isErased()).toBe(true); // because of the end of the look before
    expect(answers).toHaveLength(2);
    expect(await isErased()).toBe(false);
    expect(answers).toHaveLength(0);
    expect(told).toHaveLength(1);
  });

  it('erases at the next look when the list could not be read at this one', async () => {
    const { forgets, setList, plant, planted, said, changes } = scene();
    await setList({ records: [done('1')] });
    await forgets.look();
    await plant();
    said.isUnsettled = () => true;
    changes.get = () => Promise.reject(new Error('away'));
    await expect(forgets.look()).rejects.toThrow('away');
    said.isUnsettled = () => false;
    delete changes.get;
    await forgets.look();
    expect(await planted()).toBeUndefined();
    await plant();
    await forgets.look();
    expect(await planted()).toBe('value');
  });

  it('tells of a subject, and takes it for seen, only when it could be erased', async () => {
    const { forgets, setList, takeLog, said, changes, done: told } = scene();
    said.isRotating = true;
    await setList({ records: [done('1')] });
    changes.list = () => Promise.reject(new Error('away'));
    await expect(forgets.look()).rejects.toThrow('away');
    expect(takeLog()).toEqual(['it forgets somebody']);
    expect(told).toEqual([]);
    delete changes.list;
    await forgets.look();
    expect(takeLog()).toEqual(['it forgets somebody', 'it forgets somebody']);
    expect(told).toEqual([done('1')]);
  });

  it('forgets everybody, and erases nothing, for a record that names nobody', async () => {
    const { forgets, setList, plant, planted, takeLog, said, erases, done: told } = scene();
    said.isRotating = true;
    said.isUnsettled = () => true;
    await plant();
    await setList({ records: [ofEverybody('1', 'done')] });
    await forgets.look();
    await forgets.look();
    expect(takeLog()).toEqual(['it forgets everybody']);
    expect(erases()).toBe(0);
    expect(await planted()).toBe('value');
    expect(told).toEqual([ofEverybody('1', 'done')]);
  });

  it('tells which keys are about somebody on the list, whether or not this process has seen it there', async () => {
    const { forgets, setList, sealed, memory, plant } = scene();
    await plant();
    const [planted] = await memory.list('');
    await sealed.set(['known', 'another'], 'value', minute);
    const told = async () => (await memory.list('')).filter(await forgets.forgottenKeys(sealed));
    expect(await told()).toEqual([]);
    await setList({ records: [begun('1')] });
    expect(await told()).toEqual([planted]);
    await forgets.look();
    expect(await told()).toEqual([planted]);
  });

  it('tells of what is about somebody, and of no link or silence, when the list says everybody', async () => {
    const { forgets, setList, sealed, memory, plant } = scene();
    await sealed.set(['client-link', 'key'], 'created', minute);
    const before = await memory.list('');
    await sealed.set({ subject: 'another', parts: ['job'] }, 'status', minute);
    await plant();
    const about = (await memory.list('')).filter((key) => !before.includes(key));
    await setList({ records: [ofEverybody('1', 'done'), done('2')] });
    const told = (await memory.list('')).filter(await forgets.forgottenKeys(sealed));
    expect(new Set(told)).toEqual(new Set(about));
  });

  it('forgets again for a record that left the list and came back', async () => {
    const { forgets, setList, takeLog } = scene();
    const lists = [[begun('1'), begun('2', 'another')], [begun('2', 'another')], [begun('1'), begun('2', 'another')]];
    const logs = [];
    for (const records of lists) {
      await setList({ records });
      await forgets.look();
      logs.push(takeLog());
    }
    expect(logs).toEqual([['it forgets somebody', 'it forgets another'], [], ['it forgets somebody']]);
  });

  it('does not take a record for one that left while the store does not answer', async () => {
    const { forgets, setList, takeLog, said } = scene();
    await setList({ records: [begun('1')] });
    await forgets.look();
    takeLog();
    await setList({ records: [] });
    said.isUnsettled = () => true;
    await forgets.look();
    said.isUnsettled = () => false;
    await setList({ records: [begun('1')] });
    await forgets.look();
    expect(takeLog()).toEqual([]);
  });
});

describe('A process that could not look at the list for half an hour', () => {
  it.each([
    ['forgets nobody when it was exactly that long', recordMs / 2, []],
    ['forgets everybody when it was longer', recordMs / 2 + 1, ['it forgets everybody']],
  ])('%s', async (_, awayMs, expected) => {
    const { forgets, time, takeLog } = scene();
    time.now += awayMs; // since it began
    await forgets.look();
    expect(takeLog()).toEqual(expected);
    time.now += awayMs; // since the last look
    await forgets.look();
    expect(takeLog()).toEqual(expected);
    await forgets.look();
    expect(takeLog()).toEqual([]);
  });

  it('forgets everybody once the store answers again, not before', async () => {
    const { forgets, time, takeLog, said } = scene();
    await forgets.look();
    said.isUnsettled = () => true;
    for (let look = 0; look < 3; look++) {
      time.now += recordMs / 4 + 1;
      await forgets.look();
    }
    expect(takeLog()).toEqual([]);
    said.isUnsettled = () => false;
    await forgets.look();
    expect(takeLog()).toEqual(['it forgets everybody']);
    await forgets.look();
    expect(takeLog()).toEqual([]);
  });

  it('is not one that looked every few minutes all day', async () => {
    const { forgets, time, takeLog } = scene();
    for (let look = 0; look < 200; look++) {
      time.now += recordMs / 10;
      await forgets.look();
    }
    expect(takeLog()).toEqual([]);
  });
});

describe('What was read under a lease that was lost', () => {
  it.each<[string, boolean, readonly ForgetRecord[]]>([
    ['is kept when the list is empty', false, []],
    ['is kept when the list is about others', false, [done('1', 'another'), begun('2', 'a third')]],
    ['may be about somebody who was forgotten', true, [done('1', 'another'), done('2')]],
    ['may be about somebody who is being forgotten', true, [begun('1')]],
    ['may be about somebody when everybody was forgotten', true, [done('1', 'another'), ofEverybody('2', 'done')]],
  ])('%s', async (_, expected, records) => {
    const { forgets, setList } = scene();
    await setList({ records });
    expect(await forgets.mayHaveForgotten(who, startsAt)).toBe(expected);
    for (const awayMs of [-recordMs / 2, recordMs / 2]) {
      expect(await forgets.mayHaveForgotten(who, startsAt + awayMs)).toBe(expected);
    }
  });

  it.each([-1, 1])('may be about anybody when it began more than half an hour away (%i)', async (direction) => {
    const { forgets } = scene();
    expect(await forgets.mayHaveForgotten(who, startsAt + direction * (recordMs / 2 + 1))).toBe(true);
  });

  it('is kept when there never was a list', async () => {
    expect(await scene().forgets.mayHaveForgotten(who, startsAt)).toBe(false);
  });
});

describe('Looking at the list from time to time', () => {
  it('begins at once, goes on every two seconds, and ends when it is stopped', async () => {
    const { forgets, time, callsOf } = scene();
    const looks = () => callsOf('get').length;
    await forgets.start();
    expect(looks()).toBe(1);
    await time.runUntil(startsAt + 2000);
    expect(looks()).toBe(1);
    await time.runUntil(startsAt + 2001);
    expect(looks()).toBe(2);
    await time.runUntil(startsAt + 4000);
    expect(looks()).toBe(2);
    await time.runUntil(startsAt + 10_001);
    expect(looks()).toBe(6);
    forgets.stop();
    await time.runUntil(startsAt + 100_000);
    expect(looks()).toBe(6);
  });

  it('goes on after a look that failed', async () => {
    const { forgets, time, callsOf, changes, setList, takeLog } = scene();
    await setList({ records: [begun('1')] });
    changes.get = () => Promise.reject(new Error('away'));
    await forgets.start();
    await time.runUntil(startsAt + 2001);
    expect(callsOf('get')).toHaveLength(2);
    expect(takeLog()).toEqual([]);
    delete changes.get;
    await time.runUntil(startsAt + 4001);
    expect(takeLog()).toEqual(['it forgets somebody']);
    forgets.stop();
  });

  /** A process whose first look has begun and ends when the store is told to answer. */
  function startedWithSlowStore() {
    const { changes, ...rest } = scene();
    let answer = () => {};
    changes.get = () =>
      new Promise((resolve) => {
        answer = () => resolve(undefined);
      });
    return { ...rest, answer: () => answer(), starting: rest.forgets.start() };
  }

  it('ends also when it is stopped during a look', async () => {
    const { forgets, time, callsOf, answer, starting } = startedWithSlowStore();
    await settled();
    forgets.stop();
    answer();
    await starting;
    await time.runUntil(startsAt + 100_000);
    expect(callsOf('get')).toHaveLength(1);
  });

  it('waits two seconds after a look has ended, however long that took', async () => {
    const { forgets, time, callsOf, answer, starting } = startedWithSlowStore();
    await time.runUntil(startsAt + 60_000);
    expect(callsOf('get')).toHaveLength(1);
    answer();
    await starting;
    await time.runUntil(startsAt + 62_000);
    expect(callsOf('get')).toHaveLength(1);
    await time.runUntil(startsAt + 62_001);
    expect(callsOf('get')).toHaveLength(2);
    forgets.stop();
    answer();
  });

  it('does not keep the process alive', async () => {
    const { forgetsOf } = scene();
    const timers: { isHeld: boolean }[] = [];
    const setTimer = globalThis.setTimeout;
    globalThis.setTimeout = ((run: () => void, ms: number) => {
      const timer = setTimer(run, ms);
      const state = { isHeld: true };
      timers.push(state);
      return Object.assign(timer, {
        unref: () => {
          state.isHeld = false;
          return timer;
        },
      });
    }) as typeof setTimeout;
    const forgets = forgetsOf('it');
    await forgets.start();
    expect(timers).toEqual([{ isHeld: false }]);
    forgets.stop();
  });
});
