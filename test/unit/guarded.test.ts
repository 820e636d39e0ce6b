import { access } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { guarded } from '../../src/stores/guarded.js';
import { StoreError } from '../../src/stores/StoreError.js';

it('asks a store that answers now and then, or that refuses, and none that was silent twice in a row; tells both troubles', async () => {
  let asked = 0;
  const told = new Set();
  const failing = (trouble: 'timed-out' | 'refused') => async () => {
    asked += 1;
    throw new StoreError(trouble);
  };
  const store = { get: failing('timed-out'), put: failing('refused'), fields: async () => [] };
  const { get, put, fields } = guarded(store as never, { onTrouble: (error) => told.add(error?.trouble) });
  const write = () => put('any', Buffer.of(), 1, 'always');
  for (const ask of [get, write, get, fields, get, get, get]) await ask('any').catch(() => {});
  expect(asked).toBe(5);
  expect([...told]).toEqual(['refused', 'timed-out']);
  await pause(1100); // until the first probe, which is refused
  await get('any').catch(() => {});
  expect(asked).toBe(7);
});

it('goes on after a probe that is answered, and says that it is closed after one that fails then', async () => {
  let asked = 0;
  let ask = (): Promise<never> => new Promise(() => {});
  const get = () => {
    asked += 1;
    return ask();
  };
  const close = async () => {
    ask = async () => Promise.reject(new StoreError('closed'));
  };
  const probes = [Promise.resolve(true)];
  let seconds = 0;
  const onCommand = (_: string, each: number) => {
    seconds += each;
  };
  const store = guarded({ get, put: () => probes.pop() ?? ask(), close } as never, { onCommand });
  const troubleOf = () => store.get('any').catch(({ trouble }) => trouble);
  for (const askedThen of [2, 4]) {
    expect([await troubleOf(), await troubleOf(), await troubleOf()]).toEqual(Array(3).fill('timed-out'));
    expect(asked).toBe(askedThen);
    await pause(1100);
  }
  expect(Math.round(seconds)).toBe(1);
  await store.close();
  await pause(300);
  expect(await troubleOf()).toBe('closed');
});

it('takes an answer that came while the process stood still', async () => {
  const get = async () => {
    await pause(9);
    await new Promise(setImmediate);
    const answer = access('/');
    for (const end = performance.now() + 300; performance.now() < end; );
    return answer;
  };
  await guarded({ get } as never, {}).get('any');
});
