import { expect, it } from '@jest/globals';
import { JoinedIncrements } from '../../src/stores/JoinedIncrements.js';

/** Counters whose increments end when they are told to. */
function scene() {
  const counts = new Map<string, number>();
  const asked: { readonly key: string; readonly by: number; end(error?: Error): Promise<void> }[] = [];
  const joined = new JoinedIncrements((key, by) => {
    const { promise, resolve, reject } = deferred<number>();
    const end = async (error?: Error) => {
      if (!error) counts.set(key, (counts.get(key) ?? 0) + by);
      if (error) reject(error);
      else resolve(counts.get(key) as number);
      await promise.catch(() => {});
      await new Promise(setImmediate);
    };
    asked.push({ key, by, end });
    return promise;
  });
  return { asked, increment: (key: string, by: number) => joined.increment(key, by, 1000) };
}

function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((...settle) => {
    [resolve, reject] = settle;
  });
  return { promise, resolve, reject };
}

const inShort = (asked: readonly { key: string; by: number }[]) => asked.map(({ key, by }) => `${key} +${by}`);

it('adds together what waits for the same counter, and gives each its own count', async () => {
  const { asked, increment } = scene();
  const counts = Promise.all([increment('a', 1), increment('a', 2), increment('b', 1), increment('a', 3)]);
  expect(inShort(asked)).toEqual(['a +1', 'b +1']);
  await asked[0]?.end();
  await asked[1]?.end();
  expect(inShort(asked.slice(2))).toEqual(['a +5']);
  await asked[2]?.end();
  expect(await counts).toEqual([1, 3, 1, 6]);
});

it('fails those that were added together, and no other', async () => {
  const { asked, increment } = scene();
  const outcomes = Promise.allSettled([increment('a', 1), increment('a', 2), increment('a', 3)]);
  await asked[0]?.end();
  const later = increment('a', 4);
  await asked[1]?.end(new Error('the store is away'));
  await asked[2]?.end();
  expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  expect(await later).toBe(5);
  const next = increment('a', 1);
  await asked[3]?.end();
  expect(await next).toBe(6);
});
