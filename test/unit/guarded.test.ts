import { setTimeout as pause } from 'node:timers/promises';
import { guarded } from '../../src/stores/guarded.js';
import { StoreError } from '../../src/stores/StoreError.js';

it('asks a store that answers now and then, or that refuses, and none that was silent twice in a row', async () => {
  let asked = 0;
  const failing = (trouble: 'timed-out' | 'full') => async () => {
    asked += 1;
    throw new StoreError(trouble);
  };
  const store = { get: failing('timed-out'), put: failing('full'), fields: async () => [] };
  const { get, fields } = guarded(store as never, {});
  for (const ask of [get, fields, get, get, get]) await ask('any').catch(() => {});
  expect(asked).toBe(3);
  await pause(1100); // until the first probe, which is refused
  await get('any').catch(() => {});
  expect(asked).toBe(5);
});

it('that is closed during a probe, which then fails, says that it is closed', async () => {
  let ask = (): Promise<never> => new Promise(() => {});
  const close = async () => {
    ask = async () => Promise.reject(new StoreError('closed'));
  };
  const store = guarded({ get: () => ask(), put: () => ask(), close } as never, {});
  const troubleOf = () => store.get('any').catch(({ trouble }) => trouble);
  expect([await troubleOf(), await troubleOf()]).toEqual(['timed-out', 'timed-out']);
  await pause(1100);
  await store.close();
  await pause(300);
  expect(await troubleOf()).toBe('closed');
});
