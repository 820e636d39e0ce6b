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
